-- Kind: stop
-- A round is written in blocks of at most 1,024 segments: first the blocks, with the number of the
-- next round, then the round with its timestamp. Until then the blocks are staged and their events
-- pending. A segment's path is computed from its block and the roots of the blocks; only segments of
-- older versions have their own path, and no place.
CREATE TABLE round_blocks (       -- global, like seal_rounds
	round BIGINT NOT NULL,
	block BIGINT NOT NULL,        -- from 0
	roots BLOB NOT NULL,          -- of its segments
	events BIGINT NOT NULL,
	latest_received_at BIGINT NOT NULL,
	PRIMARY KEY (round, block)
) WITHOUT ROWID;
-- One row: the next round and its number of staged blocks. Staging a block, removing one and writing
-- the round update the row and its count of changes. So a round has exactly the blocks that its
-- timestamp covers, and not the same number of other blocks.
CREATE TABLE staged_round (       -- global
	round BIGINT PRIMARY KEY,
	blocks BIGINT NOT NULL,
	changes BIGINT NOT NULL
);
INSERT INTO staged_round (round, blocks, changes)
	SELECT COALESCE(MAX(round), 0) + 1, 0, 0 FROM seal_rounds;
CREATE TABLE round_tokens (       -- second timestamps of rounds; global
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
