-- A program of before that still runs writes rounds that know no blocks: over what is staged, they
-- would seem to seal it. Those that stand stay as they are.
ALTER TABLE seal_rounds ADD CONSTRAINT seal_rounds_in_blocks CHECK (blocks IS NOT NULL) NOT VALID;
