-- Kind: stop
-- The Idempotency-Key of the request for a certification: a repeated request returns this
-- certification. It is removed when it expires.
ALTER TABLE certifications ADD COLUMN idempotency_key TEXT COLLATE "C";
CREATE UNIQUE INDEX certifications_by_idempotency_key
	ON certifications (account, chain, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX certifications_with_idempotency_key
	ON certifications (requested_at) WHERE idempotency_key IS NOT NULL;
