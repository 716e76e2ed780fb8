-- When keys were last used, for reading too: written by a job, never by requests. Beside api_keys,
-- which every node reads all the time and nobody rewrites.
CREATE TABLE key_last_use (
	account BIGINT NOT NULL,
	key BIGINT NOT NULL,
	at BIGINT NOT NULL,
	PRIMARY KEY (account, key)
);
