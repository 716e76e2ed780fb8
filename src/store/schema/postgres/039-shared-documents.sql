-- What documents of one range have in common is stored once (content/composite.h).
ALTER TABLE issued_files ADD COLUMN shared_object TEXT;   -- NULL: the object is the whole document
ALTER TABLE issued_files ADD COLUMN pieces TEXT;          -- of both objects
ALTER TABLE issued_files ADD COLUMN own_bytes BIGINT;     -- size of the object; NULL: size_bytes
CREATE INDEX issued_files_by_shared ON issued_files(shared_object) WHERE shared_object IS NOT NULL;
CREATE INDEX certifications_of_range ON certifications(account, chain, first_sequence, last_sequence);
-- Bytes of what an account has stored: content and the objects of issued documents, each object once.
-- The program that applies this step fills them from what is there.
ALTER TABLE accounts ADD COLUMN stored_bytes BIGINT NOT NULL DEFAULT 0;
-- Of a certification under way: what its documents may need of that, as estimated when it was accepted.
ALTER TABLE certifications ADD COLUMN expected_bytes BIGINT NOT NULL DEFAULT 0;
