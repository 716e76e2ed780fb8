-- Rollbacks that an operator confirmed, and the secrets of download links. Both are global.

CREATE TABLE rollbacks (
	accepted_at BIGINT NOT NULL,
	node TEXT NOT NULL,           -- whose signing process had seen the store further
	round BIGINT NOT NULL,        -- the last of the store; 0: none
	root BLOB NOT NULL,
	known_round BIGINT NOT NULL,  -- what the node had seen
	known_root BLOB NOT NULL,
	reason TEXT NOT NULL
);

CREATE TABLE link_secrets (       -- MAC keys; one is made at the first start
	number BIGINT PRIMARY KEY,
	secret TEXT NOT NULL,         -- 64 hex digits
	used_from BIGINT NOT NULL,    -- new links carry the latest that is used by then
	valid_until BIGINT            -- NULL: until it is replaced
);

INSERT INTO link_secrets (number, secret, used_from)
SELECT 1, value, 0 FROM settings WHERE name = 'link_secret';
DELETE FROM settings WHERE name = 'link_secret';
