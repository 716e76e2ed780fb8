-- Kind: stop
-- The outbox of e-mails to account owners, sent by the mailer.
CREATE TABLE mails (
	account BIGINT NOT NULL,
	mail_id TEXT NOT NULL,
	template TEXT NOT NULL,
	details TEXT NOT NULL,        -- JSON: values for the template
	queued_at BIGINT NOT NULL,
	state TEXT NOT NULL DEFAULT 'waiting', -- waiting, sent, failed, dropped
	attempts BIGINT NOT NULL DEFAULT 0,
	next_at BIGINT NOT NULL,      -- waiting: when it may be claimed; while leased, the lease's end
	lease TEXT,                   -- holder
	last_error TEXT,
	ended_at BIGINT,
	PRIMARY KEY (account, mail_id)
) WITHOUT ROWID;
CREATE INDEX mails_due ON mails(next_at) WHERE state = 'waiting';
