-- Kind: stop
-- Signing certificates of reports and archives, with their periods of use. Global; rows are never
-- deleted.
CREATE TABLE signers (
	number BIGINT PRIMARY KEY,
	sha256 BLOB NOT NULL UNIQUE,  -- of the certificate
	development BIGINT NOT NULL,  -- 1: a self-made development key
	certificates TEXT NOT NULL,   -- PEM: the certificate, then its issuers
	used_from BIGINT NOT NULL,
	used_until BIGINT,            -- NULL: in force, at most one; an ended one never signs again
	reason TEXT                   -- why it was ended or replaced
);
