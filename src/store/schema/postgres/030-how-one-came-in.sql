-- What is done in a session that an operator's link began is told from what the user did himself, and so is what is
-- done with a passkey that was added in such a session. NULL: from before this was kept.
ALTER TABLE sessions ADD COLUMN signed_in_by TEXT COLLATE "C"; -- link, passkey, operator_link, operator_passkey
ALTER TABLE passkeys ADD COLUMN added_by TEXT COLLATE "C";     -- the same of the session that added it
-- Sessions are forgotten after a day; when somebody was last in an account is not.
ALTER TABLE memberships ADD COLUMN seen_at BIGINT; -- a minute late at most; NULL: never
UPDATE memberships SET seen_at = (SELECT MAX(s.seen_at) FROM sessions s WHERE s.user_id = memberships.user_id
	AND s.account = memberships.account);
