-- Kind: stop
-- Root certificates of all timestamps, also of former authorities, which a verifier has to trust.
-- Global; rows are only inserted.
CREATE TABLE timestamp_roots (
	sha256 BYTEA PRIMARY KEY,      -- of the certificate
	certificate TEXT NOT NULL,    -- PEM
	first_used BIGINT NOT NULL
);
