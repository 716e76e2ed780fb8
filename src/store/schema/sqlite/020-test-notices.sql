-- Kind: rolling
-- Notices that programs of developers fetch (notices/test_notices.h).
CREATE TABLE test_notices (
	account BIGINT NOT NULL,
	chain BIGINT NOT NULL,        -- the test chain of the channel
	position BIGINT NOT NULL,     -- ascending in the order of the commits; about the time of writing, in microseconds
	notice_id TEXT NOT NULL,
	type TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	data TEXT NOT NULL,           -- JSON
	PRIMARY KEY (account, chain, position)
);
CREATE INDEX test_notices_by_age ON test_notices(position); -- for housekeeping
