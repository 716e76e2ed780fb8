-- Kind: rolling
-- The request log of accounts (usage/request_records.h). Rows are deleted after 30 days, and may be missing.
CREATE TABLE requests (
	account BIGINT NOT NULL,
	at BIGINT NOT NULL,           -- when the request began
	request BIGINT NOT NULL,      -- the number in its X-Request-Id
	channel BIGINT NOT NULL,
	key BIGINT NOT NULL,
	method TEXT COLLATE "C", -- NULL: no head arrived
	route TEXT COLLATE "C", -- pattern of the path; NULL: unknown path
	path TEXT COLLATE "C" NOT NULL, -- as sent, without keys, cut
	query TEXT COLLATE "C" NOT NULL,
	status BIGINT NOT NULL,       -- 0: no answer
	code TEXT COLLATE "C", -- error code of the answer; NULL: none
	incident TEXT COLLATE "C",
	duration BIGINT NOT NULL,     -- microseconds
	bytes_in BIGINT NOT NULL,     -- of the body
	bytes_out BIGINT NOT NULL,
	aborted BIGINT NOT NULL,      -- 1: the client did not receive the whole answer
	represents BIGINT NOT NULL,   -- requests that the row represents, its own included
	PRIMARY KEY (account, at, request)
);
CREATE INDEX requests_by_number ON requests (account, request);
