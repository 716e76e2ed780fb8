-- A token that cannot be covered now is left out for a while, so that it holds up no other.
ALTER TABLE tokens_at_rest ADD COLUMN attempts BIGINT NOT NULL DEFAULT 0; -- in a row, that failed
ALTER TABLE tokens_at_rest ADD COLUMN next_attempt_at BIGINT NOT NULL DEFAULT 0;
