-- A round is written in blocks of at most 1,024 segments: first each of them, with the number of a
-- round that is not there yet, then the round, with its timestamp. Until then they are staged, and
-- their events pending. A segment's path is computed from its block and the blocks' roots; only
-- segments of before have a path of their own, and no place.
CREATE TABLE round_blocks (       -- global, as seal_rounds
	round BIGINT NOT NULL,
	block BIGINT NOT NULL,        -- from 0
	roots BLOB NOT NULL,          -- of its segments
	events BIGINT NOT NULL,
	latest_received_at BIGINT NOT NULL,
	PRIMARY KEY (round, block)
) WITHOUT ROWID;
-- One row: the round to come and how many blocks of it are staged. Whoever adds one, takes one back
-- or writes the round changes it, and counts that, so that a round has exactly the blocks that its
-- timestamp covers: as many others in their place are not the same.
CREATE TABLE staged_round (       -- global
	round BIGINT PRIMARY KEY,
	blocks BIGINT NOT NULL,
	changes BIGINT NOT NULL
);
INSERT INTO staged_round (round, blocks, changes)
	SELECT COALESCE(MAX(round), 0) + 1, 0, 0 FROM seal_rounds;
CREATE TABLE round_tokens (       -- the second timestamps of rounds that have two; global
	round BIGINT PRIMARY KEY,
	authority TEXT NOT NULL,
	kind TEXT NOT NULL,
	sealed_at BIGINT NOT NULL,
	request BLOB NOT NULL,
	response_head BLOB NOT NULL,
	token BLOB NOT NULL
);
ALTER TABLE seal_rounds ADD COLUMN blocks BLOB;     -- the roots of its blocks
ALTER TABLE segments ADD COLUMN place BIGINT;       -- in its round: block * 1024 + place in it
ALTER TABLE chains ADD COLUMN sealed_round BIGINT NOT NULL DEFAULT 0;  -- of its last segment
ALTER TABLE chains ADD COLUMN sealed_before BIGINT NOT NULL DEFAULT 0; -- sealed_sequence before it
