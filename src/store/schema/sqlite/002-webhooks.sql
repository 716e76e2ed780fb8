-- Kind: stop
-- Webhook endpoints and the notices delivered to them.
CREATE TABLE webhook_endpoints (
	account BIGINT NOT NULL,
	endpoint INTEGER PRIMARY KEY,
	endpoint_id TEXT NOT NULL UNIQUE,
	url TEXT NOT NULL,
	types TEXT,                   -- ",type,type,": types that it receives; NULL: every type
	created_at BIGINT NOT NULL,
	secret_version BIGINT NOT NULL DEFAULT 1, -- secrets are derived, not stored
	previous_secret_until BIGINT, -- the previous version also signs until then
	failures BIGINT NOT NULL DEFAULT 0, -- consecutive notices that failed in all attempts
	disabled_at BIGINT,
	disabled_by TEXT,             -- operator, failures
	deleted_at BIGINT,            -- the row is deleted after its deliveries
	next_at BIGINT                -- when its first waiting delivery is due; NULL: nothing to do
);
CREATE INDEX webhook_endpoints_of_account ON webhook_endpoints(account, endpoint);
CREATE INDEX webhook_endpoints_due ON webhook_endpoints(next_at) WHERE next_at IS NOT NULL;

-- A notice for an endpoint: written in the transaction that causes the notice.
CREATE TABLE webhook_deliveries (
	account BIGINT NOT NULL,
	endpoint BIGINT NOT NULL,
	notice BIGINT NOT NULL,
	status TEXT NOT NULL,         -- waiting, delivered, failed
	attempts BIGINT NOT NULL,     -- total number
	tries BIGINT NOT NULL,        -- in the current schedule, which a replay starts again
	next_attempt_at BIGINT NOT NULL, -- waiting: when it is due; else when it ended
	PRIMARY KEY (account, endpoint, notice)
) WITHOUT ROWID;
CREATE INDEX webhook_deliveries_waiting ON webhook_deliveries(account, endpoint, next_attempt_at)
	WHERE status = 'waiting';

CREATE TABLE webhook_attempts (
	account BIGINT NOT NULL,
	endpoint BIGINT NOT NULL,
	notice BIGINT NOT NULL,
	attempt BIGINT NOT NULL,      -- from 1
	at BIGINT NOT NULL,
	duration_us BIGINT NOT NULL,
	http_status BIGINT,           -- NULL: no complete response
	error TEXT,                   -- why there was no response
	answer BLOB,                  -- first bytes of its body
	PRIMARY KEY (account, endpoint, notice, attempt)
) WITHOUT ROWID;

CREATE INDEX notices_by_age ON notices(created_at); -- for housekeeping
