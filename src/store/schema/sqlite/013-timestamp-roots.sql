-- The roots that timestamps led to, whatever authorities there are today: what a verifier has to
-- trust. Global; rows are only added.
CREATE TABLE timestamp_roots (
	sha256 BLOB PRIMARY KEY,      -- of the certificate
	certificate TEXT NOT NULL,    -- PEM
	first_used BIGINT NOT NULL
);
