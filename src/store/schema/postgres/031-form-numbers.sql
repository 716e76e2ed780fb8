-- A form that is sent twice does once: what was done with it is kept with the act for a day, and leads whoever sends
-- it again to what came of it.
CREATE TABLE form_numbers (
	account BIGINT NOT NULL,
	digest BYTEA NOT NULL,         -- of the user, the page's number, the operation and its arguments
	act_id TEXT COLLATE "C",                  -- NULL: under way, or its outcome is not known
	at BIGINT NOT NULL,
	PRIMARY KEY (account, digest)
);
CREATE INDEX form_numbers_by_time ON form_numbers (at);
