-- Kind: stop
-- Consecutive attempts that failed through their own fault. A certification is retried for an hour of
-- these, however long it has waited for other causes.
ALTER TABLE certifications ADD COLUMN own_failures BIGINT NOT NULL DEFAULT 0;
