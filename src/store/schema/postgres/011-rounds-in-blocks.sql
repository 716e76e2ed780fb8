-- Kind: stop
-- An older node that still runs writes rounds without blocks, which would appear to seal the staged
-- segments. The constraint prevents that; existing rounds are not changed.
ALTER TABLE seal_rounds ADD CONSTRAINT seal_rounds_in_blocks CHECK (blocks IS NOT NULL) NOT VALID;
