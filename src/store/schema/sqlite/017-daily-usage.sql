-- What keys did on each UTC day: totals, kept by the transactions that they count, so that nobody
-- has to read events to know them. A day's rows of an account lie together: a batch over many
-- channels touches few pages. `day` counts from 1970-01-01. They take the place of key_usage; the
-- program that applies this step fills them from the events and certifications that are there.
DROP TABLE key_usage;
CREATE TABLE daily_usage (
	account BIGINT NOT NULL,
	day BIGINT NOT NULL,          -- of received_at
	chain BIGINT NOT NULL,
	key BIGINT NOT NULL,
	events BIGINT NOT NULL,
	unpaid_events BIGINT NOT NULL, -- of them, without credits when they were received
	content_bytes BIGINT NOT NULL,
	PRIMARY KEY (account, day, chain, key)
) WITHOUT ROWID;
CREATE TABLE daily_certifications (
	account BIGINT NOT NULL,
	day BIGINT NOT NULL,          -- of asking, or of the end
	chain BIGINT NOT NULL,
	key BIGINT NOT NULL,
	requested BIGINT NOT NULL,
	completed BIGINT NOT NULL,
	failed BIGINT NOT NULL,
	events BIGINT NOT NULL,       -- of those completed
	fees BIGINT NOT NULL,         -- credits, when asked for
	refunds BIGINT NOT NULL,      -- credits given back, when failed
	PRIMARY KEY (account, day, chain, key)
) WITHOUT ROWID;
