-- Kind: stop
-- Validation data of round timestamps that is not inside their tokens: issuer certificates and
-- revocation information. Both tables are global; rows are only inserted.
CREATE TABLE validation_objects (
	sha256 BYTEA PRIMARY KEY,      -- of der
	kind TEXT NOT NULL,           -- certificate, crl, ocsp
	der BYTEA NOT NULL,
	first_seen BIGINT NOT NULL
);
CREATE TABLE token_validation (   -- the objects that a token needs
	token_hash BYTEA NOT NULL,     -- SHA-256 of the token, as in later seal documents
	sha256 BYTEA NOT NULL,
	PRIMARY KEY (token_hash, sha256)
);
