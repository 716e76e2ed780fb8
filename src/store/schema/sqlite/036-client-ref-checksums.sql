-- Checksums of what the index of client_refs consists of (events/client_ref_runs.h). Runs that are there have none, but
-- what they are merged into has: only the schema changes here, however large the tables are.
ALTER TABLE client_ref_runs ADD COLUMN checksum BIGINT;
ALTER TABLE client_ref_runs ADD COLUMN checked BIGINT NOT NULL DEFAULT 0; -- 1: its blocks have checksums
ALTER TABLE client_ref_buckets ADD COLUMN checksum BIGINT;
ALTER TABLE client_ref_filters ADD COLUMN checksum BIGINT;
ALTER TABLE fresh_client_refs_0 ADD COLUMN checksum BIGINT;
ALTER TABLE fresh_client_refs_1 ADD COLUMN checksum BIGINT;
