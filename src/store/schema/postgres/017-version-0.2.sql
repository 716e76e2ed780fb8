-- Kind: stop
-- Version 0.2.

-- Totals of each key by UTC day. The transactions that they count maintain them, so that nothing has to read events to
-- compute them. The rows of an account's day lie together: a batch over many channels changes few pages. `day` counts
-- from 1970-01-01. These tables replace key_usage; the program fills them from existing events and certifications when
-- it applies this step.
DROP TABLE key_usage;
CREATE TABLE daily_usage (
	account BIGINT NOT NULL,
	day BIGINT NOT NULL,          -- of received_at
	chain BIGINT NOT NULL,
	key BIGINT NOT NULL,
	events BIGINT NOT NULL,
	unpaid_events BIGINT NOT NULL, -- of these, registered without credits
	content_bytes BIGINT NOT NULL,
	PRIMARY KEY (account, day, chain, key)
);
CREATE TABLE daily_certifications (
	account BIGINT NOT NULL,
	day BIGINT NOT NULL,          -- of the request, or of the end
	chain BIGINT NOT NULL,
	key BIGINT NOT NULL,
	requested BIGINT NOT NULL,
	completed BIGINT NOT NULL,
	failed BIGINT NOT NULL,
	events BIGINT NOT NULL,       -- of completed ones
	fees BIGINT NOT NULL,         -- credits, at the request
	refunds BIGINT NOT NULL,      -- credits, after a failure
	PRIMARY KEY (account, day, chain, key)
);
-- Movements of credits by UTC day, except those of registrations, which are in daily_usage. Both tables and the current
-- balance give the balance at the end of any day.
CREATE TABLE daily_credits (
	account BIGINT NOT NULL,
	day BIGINT NOT NULL,
	kind TEXT NOT NULL,           -- as in credit_entries, never `events`
	movements BIGINT NOT NULL,
	credits BIGINT NOT NULL,      -- their sum
	PRIMARY KEY (account, day, kind)
);
CREATE INDEX certifications_under_way ON certifications(account, certification)
	WHERE status = 'processing';
-- Replayed deliveries alternate with new ones.
ALTER TABLE webhook_deliveries ADD COLUMN replayed BIGINT NOT NULL DEFAULT 0; -- 1: queued by a replay
ALTER TABLE webhook_deliveries ADD COLUMN replayed_at BIGINT; -- the last replay; NULL: none
DROP INDEX IF EXISTS webhook_deliveries_waiting;
CREATE INDEX webhook_deliveries_turns
	ON webhook_deliveries(account, endpoint, replayed, next_attempt_at) WHERE status = 'waiting';
-- The last use of each key, also for reading. A job writes it, not the requests. It is separate from api_keys, which
-- every node reads often and which is rarely written.
CREATE TABLE key_last_use (
	account BIGINT NOT NULL,
	key BIGINT NOT NULL,
	at BIGINT NOT NULL,
	PRIMARY KEY (account, key)
);
-- The audit log. Entries are only inserted, each in the transaction of the operation that it records.
CREATE TABLE acts (
	account BIGINT NOT NULL,      -- 0: of no account
	number BIGINT NOT NULL,       -- from 1 within the account, without gaps
	act_id TEXT COLLATE "C" NOT NULL,
	at BIGINT NOT NULL,           -- by the store's clock
	operation TEXT COLLATE "C" NOT NULL,
	document TEXT COLLATE "C" NOT NULL,       -- canonical JSON (RFC 8785)
	chain_hash BYTEA NOT NULL,     -- SHA-256 of the previous chain_hash (zeros at first) and of the document's SHA-256
	PRIMARY KEY (account, number)
);
CREATE INDEX acts_by_time ON acts (at, account, number);
CREATE INDEX acts_by_id ON acts (act_id);
-- Audit entries are sealed in the rounds, as events are. Their segments are rows of segments: chain -2 holds an account's
-- entries, chain -4 its urgent ones, which have negative numbers in acts.
CREATE TABLE unsealed_acts (      -- entries without a segment
	account BIGINT NOT NULL,
	chain BIGINT NOT NULL,
	number BIGINT NOT NULL,       -- within its chain, from 1
	PRIMARY KEY (account, chain, number)
);
-- The expiry of a key, and the reason of its revocation.
ALTER TABLE api_keys ADD COLUMN expires_at BIGINT; -- NULL: none
ALTER TABLE api_keys ADD COLUMN revoked_for TEXT COLLATE "C"; -- NULL: no reason was given
-- Users of the console: identity, roles by account, credentials. All of it is global, since a user may have several
-- accounts. Of secrets only the SHA-256 is stored.
CREATE TABLE users (
	user_id TEXT COLLATE "C" PRIMARY KEY,
	email TEXT COLLATE "C" NOT NULL UNIQUE,   -- in lower case
	language TEXT COLLATE "C" NOT NULL,       -- en, es
	created_at BIGINT NOT NULL
);
CREATE TABLE memberships (
	user_id TEXT COLLATE "C" NOT NULL,
	account BIGINT NOT NULL,
	role TEXT COLLATE "C" NOT NULL,           -- owner, developer, accountant, reader
	made_at BIGINT NOT NULL,
	made_by TEXT COLLATE "C",                 -- the user who invited; NULL: the operator
	taken_up BIGINT NOT NULL DEFAULT 1, -- 0: an invitation that was not accepted yet
	seen_at BIGINT,               -- the last session in the account, up to a minute old; NULL: none
	PRIMARY KEY (user_id, account)
);
CREATE INDEX memberships_by_account ON memberships (account, user_id);
CREATE TABLE sign_in_links (
	digest BYTEA PRIMARY KEY,      -- of the link's secret
	asked TEXT COLLATE "C" NOT NULL,          -- the request; its links are used up together
	user_id TEXT COLLATE "C" NOT NULL,
	browser BYTEA,                 -- of the cookie of the requesting browser; NULL: any (an operator's link)
	made_at BIGINT NOT NULL,
	expires_at BIGINT NOT NULL,
	used_at BIGINT,
	standing TEXT COLLATE "C" NOT NULL DEFAULT 'unknown', -- of the requester: session, known, unknown; each has a limit of its own
	network TEXT COLLATE "C"                  -- of the requester: links of unknown browsers are limited by network
);
CREATE INDEX sign_in_links_by_user ON sign_in_links (user_id, made_at);
CREATE TABLE known_browsers (     -- browsers in which a user signed in before
	digest BYTEA NOT NULL,         -- of the browser's cookie
	user_id TEXT COLLATE "C" NOT NULL,
	seen_at BIGINT NOT NULL,      -- the last sign-in
	network TEXT COLLATE "C",                 -- of the last sign-in
	PRIMARY KEY (digest, user_id)
);
CREATE INDEX known_browsers_by_user ON known_browsers (user_id, seen_at);
CREATE TABLE sessions (
	digest BYTEA PRIMARY KEY,      -- of the cookie
	session_id TEXT COLLATE "C" NOT NULL UNIQUE,
	user_id TEXT COLLATE "C" NOT NULL,
	account BIGINT NOT NULL,      -- the chosen one
	made_at BIGINT NOT NULL,
	seen_at BIGINT NOT NULL,      -- up to a minute old
	signed_in_at BIGINT NOT NULL,
	by_passkey BIGINT NOT NULL,
	ended_at BIGINT,
	address TEXT COLLATE "C" NOT NULL,        -- of the client that signed in
	agent TEXT COLLATE "C" NOT NULL,          -- User-Agent of its browser
	signed_in_by TEXT COLLATE "C"             -- link, passkey, operator_link, operator_passkey
);
CREATE INDEX sessions_by_user ON sessions (user_id, made_at);
CREATE TABLE passkeys (
	credential_id BYTEA PRIMARY KEY,
	passkey_id TEXT COLLATE "C" NOT NULL UNIQUE,
	user_id TEXT COLLATE "C" NOT NULL,
	algorithm BIGINT NOT NULL,    -- of COSE: -7 ES256, -8 EdDSA
	public_key BYTEA NOT NULL,     -- ES256: x and y; EdDSA: the 32 bytes
	sign_count BIGINT NOT NULL,
	name TEXT COLLATE "C" NOT NULL,
	made_at BIGINT NOT NULL,
	used_at BIGINT,
	added_by TEXT COLLATE "C"                 -- signed_in_by of the session that added it
);
CREATE INDEX passkeys_by_user ON passkeys (user_id, made_at);
CREATE TABLE passkey_challenges (
	holder BYTEA PRIMARY KEY,      -- SHA-256 of the cookie of the browser that received it
	challenge BYTEA NOT NULL,
	made_at BIGINT NOT NULL
);
ALTER TABLE accounts ADD COLUMN passkeys_required BIGINT NOT NULL DEFAULT 0;
-- A form that is sent twice is executed once: its outcome is kept with the audit entry for a day, and answers the
-- second request.
CREATE TABLE form_numbers (
	account BIGINT NOT NULL,
	digest BYTEA NOT NULL,         -- of the user, the page's number, the operation and its arguments
	act_id TEXT COLLATE "C",                  -- NULL: under way, or of unknown outcome
	at BIGINT NOT NULL,
	PRIMARY KEY (account, digest)
);
CREATE INDEX form_numbers_by_time ON form_numbers (at);
-- Mails to recipients other than the account (0: of no account).
ALTER TABLE mails ADD COLUMN recipient TEXT COLLATE "C"; -- NULL: the account's own address and language
ALTER TABLE mails ADD COLUMN language TEXT COLLATE "C";
-- The last lookup of a top-up's customer at the payment provider, for a store that may be a copy: charges that the
-- original made after the copy are not made again.
ALTER TABLE topups ADD COLUMN looked_at BIGINT; -- NULL: none
-- The planner can choose an index that begins with the account, when the plan is made while the table is empty, for the
-- lookup of an event by its number; that plan is kept and reads all events of the account. The account remains in the
-- index because many accounts may use the same client_ref.
DROP INDEX IF EXISTS events_by_ref_hash;
CREATE INDEX events_by_ref_hash ON events(ref_hash, account);
DROP INDEX IF EXISTS segments_of_round;
CREATE INDEX segments_by_place ON segments(round, place);
-- The signed list of the signers, in its last version. Global; one row.
CREATE TABLE signer_lists (
	number BIGINT PRIMARY KEY,    -- 1
	state BYTEA NOT NULL,          -- digest of its sources
	signed_at BIGINT NOT NULL,
	document BYTEA NOT NULL        -- CMS, with the list inside
);
-- The tax of a purchase is fixed when it is created, and the provider is asked for the total of that time. NULL: created
-- by version 0.1, which did not record these.
ALTER TABLE purchases ADD COLUMN tax_rate BIGINT; -- hundredths of a percent
ALTER TABLE purchases ADD COLUMN account_name TEXT COLLATE "C";
-- Limits of an account. NULL: the general setting applies.
ALTER TABLE accounts ADD COLUMN bound_rate BIGINT;           -- requests per second, of all live keys together
ALTER TABLE accounts ADD COLUMN bound_channels BIGINT;
ALTER TABLE accounts ADD COLUMN bound_keys BIGINT;           -- that are not revoked
ALTER TABLE accounts ADD COLUMN bound_certifications BIGINT; -- live ones, of a UTC day
ALTER TABLE accounts ADD COLUMN bound_stored_bytes BIGINT;   -- content and issued documents
CREATE INDEX api_keys_account ON api_keys(account) WHERE revoked_at IS NULL;
-- Content that documents of one range share is stored once (content/composite.h).
ALTER TABLE issued_files ADD COLUMN shared_object TEXT;   -- NULL: the object is the whole document
ALTER TABLE issued_files ADD COLUMN pieces TEXT;          -- of both objects
ALTER TABLE issued_files ADD COLUMN own_bytes BIGINT;     -- size of the object; NULL: size_bytes
CREATE INDEX issued_files_by_shared ON issued_files(shared_object) WHERE shared_object IS NOT NULL;
CREATE INDEX certifications_of_range ON certifications(account, chain, first_sequence, last_sequence);
-- Stored bytes of an account: content and the objects of issued documents, each object once. The program fills them
-- from existing rows when it applies this step.
ALTER TABLE accounts ADD COLUMN stored_bytes BIGINT NOT NULL DEFAULT 0;
-- Upper estimate of the stored bytes of a certification under way, as accepted.
ALTER TABLE certifications ADD COLUMN expected_bytes BIGINT NOT NULL DEFAULT 0;
-- 1: a test certification that a scenario forces to fail.
ALTER TABLE certifications ADD COLUMN fails BIGINT NOT NULL DEFAULT 0;
