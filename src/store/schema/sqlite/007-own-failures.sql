-- Attempts in a row that failed in themselves: for an hour of these a certification is tried again,
-- however long it has waited for other things.
ALTER TABLE certifications ADD COLUMN own_failures BIGINT NOT NULL DEFAULT 0;
