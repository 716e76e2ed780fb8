-- Whoever asks for links in another's name, from browsers of his own, uses up the links of such browsers alone: those
-- of an open session, and of a browser that the user signed in with before, are counted apart.
CREATE TABLE known_browsers (
	digest BLOB NOT NULL,         -- of the cookie that the browser keeps
	user_id TEXT NOT NULL,
	seen_at BIGINT NOT NULL,      -- when he last signed in with it
	PRIMARY KEY (digest, user_id)
) WITHOUT ROWID;
CREATE INDEX known_browsers_by_user ON known_browsers (user_id, seen_at);
ALTER TABLE sign_in_links ADD COLUMN standing TEXT NOT NULL DEFAULT 'unknown'; -- of who asked: session, known, unknown
