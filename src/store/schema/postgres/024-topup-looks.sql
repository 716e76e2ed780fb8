-- When a top-up's customer was last looked up at the payment provider, because the store may be a
-- copy: what the original charged since the copy was made is not charged again.
ALTER TABLE topups ADD COLUMN looked_at BIGINT; -- NULL: never
