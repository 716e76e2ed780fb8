-- Acts of administration: only ever inserted, each in the transaction of what it tells of.
CREATE TABLE acts (
	account BIGINT NOT NULL,      -- 0: on no account
	number BIGINT NOT NULL,       -- from 1 within the account, without gaps
	act_id TEXT COLLATE "C" NOT NULL,
	at BIGINT NOT NULL,           -- by the store's clock
	operation TEXT COLLATE "C" NOT NULL,
	document TEXT COLLATE "C" NOT NULL,       -- canonical JSON (RFC 8785)
	chain_hash BYTEA NOT NULL,     -- SHA-256 of the one before's (zeros at first) and of the document's SHA-256
	PRIMARY KEY (account, number)
);
CREATE INDEX acts_by_time ON acts (at, account, number);
CREATE INDEX acts_by_id ON acts (act_id);
