-- Kind: stop
-- A token that cannot be covered now is delayed, so that it does not block the others.
ALTER TABLE tokens_at_rest ADD COLUMN attempts BIGINT NOT NULL DEFAULT 0; -- consecutive failed ones
ALTER TABLE tokens_at_rest ADD COLUMN next_attempt_at BIGINT NOT NULL DEFAULT 0;
