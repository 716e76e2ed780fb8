-- What validates rounds' timestamps and is not inside their tokens: the certificates above an
-- authority's, and what says that these were not revoked. Both are global; rows are only added.
CREATE TABLE validation_objects (
	sha256 BLOB PRIMARY KEY,      -- of der
	kind TEXT NOT NULL,           -- certificate, crl, ocsp
	der BLOB NOT NULL,
	first_seen BIGINT NOT NULL
);
CREATE TABLE token_validation (   -- which of them a token needs
	token_hash BLOB NOT NULL,     -- SHA-256 of the token, as later seal documents name it
	sha256 BLOB NOT NULL,
	PRIMARY KEY (token_hash, sha256)
) WITHOUT ROWID;
