-- Who signed reports and archives, from when to when. Global; nothing is ever taken out.
CREATE TABLE signers (
	number BIGINT PRIMARY KEY,
	sha256 BLOB NOT NULL UNIQUE,  -- of the certificate
	development BIGINT NOT NULL,  -- 1: a development key, which no one vouches for
	certificates TEXT NOT NULL,   -- PEM: its own, then its issuers
	used_from BIGINT NOT NULL,
	used_until BIGINT,            -- NULL: in force, one at most; when it is past it never signs again
	reason TEXT                   -- why it was ended or replaced
);
