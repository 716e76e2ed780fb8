-- Filters of runs that are written from now on have 64 bytes for each bucket.
ALTER TABLE client_ref_runs ADD COLUMN filter_size BIGINT NOT NULL DEFAULT 40;
