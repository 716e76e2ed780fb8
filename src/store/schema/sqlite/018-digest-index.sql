-- Kind: rolling
-- The index of the digests of events (events/digest_index.h). It is derived from events.
CREATE TABLE digest_series (
	account BIGINT NOT NULL,      -- 0: all accounts
	chain BIGINT NOT NULL,        -- 0: all chains
	version BIGINT NOT NULL,      -- changes with every change of the index of the series
	indexed BIGINT NOT NULL,      -- position of the last event in the index; 0: none
	last_run BIGINT NOT NULL,     -- the highest number of a run so far
	key_check BIGINT NOT NULL,    -- shows with which key the entries were made
	PRIMARY KEY (account, chain)
);
CREATE TABLE digest_runs (
	account BIGINT NOT NULL,
	chain BIGINT NOT NULL,
	run BIGINT NOT NULL,
	level BIGINT NOT NULL,
	state BIGINT NOT NULL,        -- 0: used, 1: being merged from others, 2: being deleted
	first BIGINT NOT NULL,        -- position of its first event, and of its last
	last BIGINT NOT NULL,
	entries BIGINT NOT NULL,      -- that are written
	PRIMARY KEY (account, chain, run)
);
CREATE TABLE digest_blocks (
	account BIGINT NOT NULL,
	chain BIGINT NOT NULL,
	run BIGINT NOT NULL,
	low BLOB NOT NULL,            -- the entries of the run from here; empty: from the beginning
	high BLOB NOT NULL,           -- and before this one, at which the next block begins; empty: to the end
	entries BLOB NOT NULL,        -- in ascending order, 10 bytes each: 6 of the keyed hash, 4 of the position in the run
	checksum BIGINT NOT NULL,
	PRIMARY KEY (account, chain, run, low)
);
