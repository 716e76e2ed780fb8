-- Kind: stop
-- Evidence records (RFC 4998): timestamps over many objects at a time, renewed before their
-- certificates expire. Issued files are never changed. Only rows of the queue are deleted; a record is
-- assembled from these rows on request.
--
-- An archive timestamp is one token over the tree of what it covers: documents of certifications,
-- tokens of rounds, tokens of earlier archive timestamps. Its leaves are staged in blocks and
-- are covered when the row with the token is inserted. Global; rows are only inserted.
CREATE TABLE archive_timestamps (
	stamp BIGINT PRIMARY KEY,     -- from 1, without gaps
	algorithm TEXT NOT NULL,      -- sha-256, sha-512: of its tree and its imprint
	authority TEXT NOT NULL,
	kind TEXT NOT NULL,           -- qualified, non_qualified, development
	stamped_at BIGINT NOT NULL,   -- genTime
	obtained_at BIGINT NOT NULL,  -- by the local clock
	request BLOB NOT NULL,
	token BLOB NOT NULL,          -- with all certificates up to the root inside
	blocks BLOB NOT NULL          -- the roots of its blocks
);
CREATE INDEX archive_timestamps_by_algorithm ON archive_timestamps (algorithm);
CREATE TABLE archive_timestamp_blocks ( -- global
	stamp BIGINT NOT NULL,
	block BIGINT NOT NULL,        -- from 0
	algorithm TEXT NOT NULL,
	leaves BLOB NOT NULL,
	staged_at BIGINT NOT NULL,
	PRIMARY KEY (stamp, block)
) WITHOUT ROWID;
-- Tokens that have to be renewed before they expire, and the archive timestamps that cover them.
CREATE TABLE tokens_at_rest (     -- global
	source TEXT NOT NULL,         -- round, second (of a round), stamp (an archive timestamp)
	number BIGINT NOT NULL,
	stamped_at BIGINT NOT NULL,
	valid_until BIGINT NOT NULL,  -- earliest expiry of its certificates
	stamp BIGINT,                 -- the archive timestamp that covers it; NULL: none
	place BIGINT,                 -- block * 1024 + place in it
	lost_at BIGINT,               -- when it was found expired without a renewal
	PRIMARY KEY (source, number)
) WITHOUT ROWID;
CREATE INDEX tokens_to_renew ON tokens_at_rest (valid_until)
	WHERE stamp IS NULL AND lost_at IS NULL;
CREATE INDEX tokens_lost ON tokens_at_rest (lost_at) WHERE lost_at IS NOT NULL;
CREATE INDEX tokens_of_stamp ON tokens_at_rest (stamp) WHERE stamp IS NOT NULL;
-- Evidence of certifications: one row for each archive timestamp chain of a record. A record whose
-- timestamps were lost is followed by another record.
CREATE TABLE evidence_chains (
	account BIGINT NOT NULL,
	certification BIGINT NOT NULL,
	record BIGINT NOT NULL,       -- from 1
	chain BIGINT NOT NULL,        -- from 1; later ones are renewals by hash tree
	hashes BLOB NOT NULL,         -- what the first archive timestamp covers, sorted
	after_stamp BIGINT,           -- the last archive timestamp of the previous chain; NULL: none
	stamp BIGINT NOT NULL,
	place BIGINT NOT NULL,
	PRIMARY KEY (account, certification, record, chain)
) WITHOUT ROWID;
CREATE INDEX evidence_chains_of_stamp ON evidence_chains (stamp);
CREATE INDEX evidence_chains_after ON evidence_chains (after_stamp)
	WHERE after_stamp IS NOT NULL;
-- Certifications whose documents wait for an archive timestamp.
CREATE TABLE evidence_queue (
	account BIGINT NOT NULL,
	certification BIGINT NOT NULL,
	reason TEXT NOT NULL,         -- first, digest (new algorithm), lost
	since BIGINT NOT NULL,
	next_attempt_at BIGINT NOT NULL,
	attempts BIGINT NOT NULL,
	last_error TEXT,
	PRIMARY KEY (account, certification)
) WITHOUT ROWID;
INSERT INTO evidence_queue
	SELECT account, certification, 'first', completed_at, 0, 0, NULL FROM certifications
	WHERE status = 'completed' AND chain % 2 = 0;
