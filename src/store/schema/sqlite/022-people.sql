-- Users of the console: who they are, what they may do in which account, how they come in. All of it is global,
-- since one user may have several accounts. Of secrets only the SHA-256 is kept.
CREATE TABLE users (
	user_id TEXT PRIMARY KEY,
	email TEXT NOT NULL UNIQUE,   -- in lower case
	language TEXT NOT NULL,       -- en, es
	created_at BIGINT NOT NULL
);
CREATE TABLE memberships (
	user_id TEXT NOT NULL,
	account BIGINT NOT NULL,
	role TEXT NOT NULL,           -- owner, developer, accountant, reader
	made_at BIGINT NOT NULL,
	made_by TEXT,                 -- the user who invited; NULL: the operator
	PRIMARY KEY (user_id, account)
) WITHOUT ROWID;
CREATE INDEX memberships_by_account ON memberships (account, user_id);
CREATE TABLE sign_in_links (
	digest BLOB PRIMARY KEY,      -- of the link's secret
	asked TEXT NOT NULL,          -- the request; its links are used up together
	user_id TEXT NOT NULL,
	browser BLOB,                 -- of the cookie of the browser that asked; NULL: any (the operator's link)
	made_at BIGINT NOT NULL,
	expires_at BIGINT NOT NULL,
	used_at BIGINT
) WITHOUT ROWID;
CREATE INDEX sign_in_links_by_user ON sign_in_links (user_id, made_at);
CREATE TABLE sessions (
	digest BLOB PRIMARY KEY,      -- of the cookie
	session_id TEXT NOT NULL UNIQUE,
	user_id TEXT NOT NULL,
	account BIGINT NOT NULL,      -- the chosen one
	made_at BIGINT NOT NULL,
	seen_at BIGINT NOT NULL,      -- a minute late at most
	signed_in_at BIGINT NOT NULL,
	by_passkey BIGINT NOT NULL,
	ended_at BIGINT,
	address TEXT NOT NULL,        -- of the client that signed in
	agent TEXT NOT NULL           -- what its browser said of itself
) WITHOUT ROWID;
CREATE INDEX sessions_by_user ON sessions (user_id, made_at);
CREATE TABLE passkeys (
	credential_id BLOB PRIMARY KEY,
	passkey_id TEXT NOT NULL UNIQUE,
	user_id TEXT NOT NULL,
	algorithm BIGINT NOT NULL,    -- of COSE: -7 ES256, -8 EdDSA
	public_key BLOB NOT NULL,     -- ES256: x and y; EdDSA: the 32 bytes
	sign_count BIGINT NOT NULL,
	name TEXT NOT NULL,
	made_at BIGINT NOT NULL,
	used_at BIGINT
) WITHOUT ROWID;
CREATE INDEX passkeys_by_user ON passkeys (user_id, made_at);
CREATE TABLE passkey_challenges (
	holder BLOB PRIMARY KEY,      -- SHA-256 of the cookie of the browser that it was given to
	challenge BLOB NOT NULL,
	made_at BIGINT NOT NULL
) WITHOUT ROWID;
ALTER TABLE accounts ADD COLUMN passkeys_required BIGINT NOT NULL DEFAULT 0;
-- Mails to somebody who is not the account (0: of no account).
ALTER TABLE mails ADD COLUMN recipient TEXT; -- NULL: the account's own address and language
ALTER TABLE mails ADD COLUMN language TEXT;
