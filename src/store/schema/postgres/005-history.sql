-- Kind: stop
-- Rollbacks that an operator accepted, and the secrets of download links. Both are global.

CREATE TABLE rollbacks (
	accepted_at BIGINT NOT NULL,
	node TEXT NOT NULL,           -- whose signing process had seen a later round
	round BIGINT NOT NULL,        -- last round of the store; 0: none
	root BYTEA NOT NULL,
	known_round BIGINT NOT NULL,  -- last round that the node had seen
	known_root BYTEA NOT NULL,
	reason TEXT NOT NULL
);

CREATE TABLE link_secrets (       -- MAC keys; the first is created at the first start
	number BIGINT PRIMARY KEY,
	secret TEXT NOT NULL,         -- 64 hex digits
	used_from BIGINT NOT NULL,    -- new links use the latest one with a past used_from
	valid_until BIGINT            -- NULL: until it is replaced
);

INSERT INTO link_secrets (number, secret, used_from)
SELECT 1, value, 0 FROM settings WHERE name = 'link_secret';
DELETE FROM settings WHERE name = 'link_secret';
