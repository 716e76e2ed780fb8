-- Kind: stop
-- A step for tests that older nodes must not work with.
ALTER TABLE accounts ADD COLUMN later_rule BIGINT NOT NULL DEFAULT 0;
