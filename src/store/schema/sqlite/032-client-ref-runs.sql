-- The index of client_refs as sorted runs (events/client_ref_runs.h). What client_refs has of before is taken out of it
-- with the registrations that come.
CREATE TABLE client_ref_runs (
	run INTEGER PRIMARY KEY,
	level BIGINT NOT NULL,
	entries BIGINT NOT NULL,
	buckets BIGINT NOT NULL,
	filled BIGINT NOT NULL,       -- of its buckets, the first ones
	goes_into BIGINT NOT NULL     -- the run that it is being merged into; 0: none
);
CREATE TABLE client_ref_buckets (
	place INTEGER PRIMARY KEY,    -- run << 32 | bucket
	entries BLOB NOT NULL         -- in ascending order; each: place, event, little-endian
);
CREATE TABLE client_ref_filters (
	place INTEGER PRIMARY KEY,    -- run << 32 | group of buckets
	filter BLOB NOT NULL
);
-- What nobody knows who would choose client_refs that come to stand together.
INSERT INTO settings(name, value) VALUES ('client_ref_key', lower(hex(randomblob(16)))) ON CONFLICT (name) DO NOTHING;
