-- The Idempotency-Key that a certification was asked for with: whoever repeats the request gets this
-- certification. It is taken away again when its time is over.
ALTER TABLE certifications ADD COLUMN idempotency_key TEXT;
CREATE UNIQUE INDEX certifications_by_idempotency_key
	ON certifications (account, chain, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX certifications_with_idempotency_key
	ON certifications (requested_at) WHERE idempotency_key IS NOT NULL;
