-- Kind: stop
-- The transparency log of segments (tlog/log_records.h): an entry for each segment, in the order of blocks and of
-- places in them. A round that was written before this step has no entries. Stops, because an
-- older node would stage blocks without entries.
ALTER TABLE round_blocks ADD COLUMN log_first BIGINT; -- index of the first entry; NULL: it has none
ALTER TABLE round_blocks ADD COLUMN log_entries BLOB; -- 112 bytes each (tlog/entry.h)
ALTER TABLE seal_rounds ADD COLUMN log_size BIGINT;    -- entries after this round; NULL: the log had not begun
ALTER TABLE seal_rounds ADD COLUMN log_root BLOB;     -- of the tree of that size
CREATE INDEX round_blocks_by_log_first ON round_blocks(log_first) WHERE log_first IS NOT NULL;
-- Tiles of the log's tree (C2SP tlog-tiles). What follows the log's size belongs to staged blocks, and may be replaced.
CREATE TABLE log_tiles (          -- global
	level BIGINT NOT NULL,
	tile BIGINT NOT NULL,         -- within its level, from 0
	hashes BLOB NOT NULL,       -- 1 to 256 hashes
	PRIMARY KEY (level, tile)
);
-- Signed checkpoints (C2SP tlog-checkpoint), one for each size that was signed.
CREATE TABLE log_checkpoints (    -- global
	origin TEXT NOT NULL,
	size BIGINT NOT NULL,
	root BLOB NOT NULL,
	signed_at BIGINT NOT NULL,
	note TEXT NOT NULL, -- with the log's signature
	cosignatures TEXT NOT NULL, -- signature lines of witnesses
	cosigners BIGINT NOT NULL,    -- number of them
	is_final BIGINT NOT NULL,     -- 1: no further cosignature is awaited
	PRIMARY KEY (origin, size)
);
-- Keys with which nodes have signed receipts and checkpoints (evidence/public_keys.h).
CREATE TABLE public_keys (        -- global
	kind TEXT NOT NULL, -- 'receipt' or 'log'
	key TEXT NOT NULL,
	used_from BIGINT NOT NULL,
	used_until BIGINT,            -- NULL: in use
	-- Of receipts: base64 of a signature by the key over the certificate of that digest (hexadecimal).
	proof TEXT,
	proof_of TEXT,
	PRIMARY KEY (kind, key)
);
-- 1: the archive has the seal documents of all segments of the chain before its own.
ALTER TABLE certifications ADD COLUMN seal_history BIGINT NOT NULL DEFAULT 0;
-- Log (its origin) that ended with the rollback, because the node had signed a tree of it; NULL: none.
ALTER TABLE rollbacks ADD COLUMN ended_log TEXT;
