-- Evidence records (RFC 4998): timestamps over many things at a time, which are renewed before what
-- validates them ends. Nothing that was issued is touched, and of what stands here only what is
-- waiting: a record is put together from these rows whenever it is asked for.
--
-- An archive timestamp is one token over the tree of what it covers: documents of certifications,
-- tokens of rounds, tokens of earlier archive timestamps. Its leaves are staged in blocks; the row
-- here, with the token, is what makes them covered. Global, rows are only added.
CREATE TABLE archive_timestamps (
	stamp BIGINT PRIMARY KEY,     -- from 1, gapless
	algorithm TEXT COLLATE "C" NOT NULL,      -- sha-256, sha-512: of its tree and its imprint
	authority TEXT COLLATE "C" NOT NULL,
	kind TEXT COLLATE "C" NOT NULL,           -- qualified, non_qualified, development
	stamped_at BIGINT NOT NULL,   -- genTime
	obtained_at BIGINT NOT NULL,  -- by our clock
	request BYTEA NOT NULL,
	token BYTEA NOT NULL,          -- with all certificates up to the root inside
	blocks BYTEA NOT NULL          -- the roots of its blocks
);
CREATE INDEX archive_timestamps_by_algorithm ON archive_timestamps (algorithm);
CREATE TABLE archive_timestamp_blocks ( -- global
	stamp BIGINT NOT NULL,
	block BIGINT NOT NULL,        -- from 0
	algorithm TEXT COLLATE "C" NOT NULL,
	leaves BYTEA NOT NULL,
	staged_at BIGINT NOT NULL,
	PRIMARY KEY (stamp, block)
);
-- Every token that has to be renewed one day, and the archive timestamp that covers it.
CREATE TABLE tokens_at_rest (     -- global
	source TEXT COLLATE "C" NOT NULL,         -- round, second (of a round), stamp (an archive timestamp)
	number BIGINT NOT NULL,
	stamped_at BIGINT NOT NULL,
	valid_until BIGINT NOT NULL,  -- the first end of its certificates
	stamp BIGINT,                 -- what covers it, once that is there; NULL: nothing yet
	place BIGINT,                 -- block * 1024 + place in it
	lost_at BIGINT,               -- found ended before it was renewed
	PRIMARY KEY (source, number)
);
CREATE INDEX tokens_to_renew ON tokens_at_rest (valid_until)
	WHERE stamp IS NULL AND lost_at IS NULL;
CREATE INDEX tokens_lost ON tokens_at_rest (lost_at) WHERE lost_at IS NOT NULL;
CREATE INDEX tokens_of_stamp ON tokens_at_rest (stamp) WHERE stamp IS NOT NULL;
-- How a certification's documents lead to archive timestamps: a row for each chain of its record. A
-- record whose timestamps were lost is followed by another.
CREATE TABLE evidence_chains (
	account BIGINT NOT NULL,
	certification BIGINT NOT NULL,
	record BIGINT NOT NULL,       -- from 1
	chain BIGINT NOT NULL,        -- from 1; later ones are renewals by hash tree
	hashes BYTEA NOT NULL,         -- what the first archive timestamp covers, sorted
	after_stamp BIGINT,           -- the last archive timestamp of the chain before; NULL: none
	stamp BIGINT NOT NULL,
	place BIGINT NOT NULL,
	PRIMARY KEY (account, certification, record, chain)
);
CREATE INDEX evidence_chains_of_stamp ON evidence_chains (stamp);
CREATE INDEX evidence_chains_after ON evidence_chains (after_stamp)
	WHERE after_stamp IS NOT NULL;
-- Certifications whose documents wait for an archive timestamp.
CREATE TABLE evidence_queue (
	account BIGINT NOT NULL,
	certification BIGINT NOT NULL,
	reason TEXT COLLATE "C" NOT NULL,         -- first, digest (by another one), lost
	since BIGINT NOT NULL,
	next_attempt_at BIGINT NOT NULL,
	attempts BIGINT NOT NULL,
	last_error TEXT,
	PRIMARY KEY (account, certification)
);
INSERT INTO evidence_queue
	SELECT account, certification, 'first', completed_at, 0, 0, NULL FROM certifications
	WHERE status = 'completed' AND chain % 2 = 0;
