-- What a round seals is counted in daily_seals behind it, a block at a time, so that the round itself
-- is a short transaction over however many accounts.
CREATE TABLE uncounted_rounds (   -- rounds that stand and are not wholly counted yet; global
	round BIGINT PRIMARY KEY,
	place BIGINT NOT NULL,        -- of the first segment that is not counted
	places BIGINT NOT NULL        -- of all its blocks: there it ends
);
DROP INDEX IF EXISTS segments_of_round;
CREATE INDEX segments_by_place ON segments(round, place);
