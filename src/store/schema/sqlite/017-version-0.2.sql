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
) WITHOUT ROWID;
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
) WITHOUT ROWID;
-- Movements of credits by UTC day, except those of registrations, which are in daily_usage. Both tables and the current
-- balance give the balance at the end of any day.
CREATE TABLE daily_credits (
	account BIGINT NOT NULL,
	day BIGINT NOT NULL,
	kind TEXT NOT NULL,           -- as in credit_entries, never `events`
	movements BIGINT NOT NULL,
	credits BIGINT NOT NULL,      -- their sum
	PRIMARY KEY (account, day, kind)
) WITHOUT ROWID;
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
) WITHOUT ROWID;
-- The audit log. Entries are only inserted, each in the transaction of the operation that it records.
CREATE TABLE acts (
	account BIGINT NOT NULL,      -- 0: of no account
	number BIGINT NOT NULL,       -- from 1 within the account, without gaps
	act_id TEXT NOT NULL UNIQUE,
	at BIGINT NOT NULL,           -- by the store's clock
	operation TEXT NOT NULL,
	document TEXT NOT NULL,       -- canonical JSON (RFC 8785)
	chain_hash BLOB NOT NULL,     -- SHA-256 of the previous chain_hash (zeros at first) and of the document's SHA-256
	PRIMARY KEY (account, number)
) WITHOUT ROWID;
CREATE INDEX acts_by_time ON acts (at, account, number);
-- Audit entries are sealed in the rounds, as events are. Their segments are rows of segments: chain -2 holds an account's
-- entries, chain -4 its urgent ones, which have negative numbers in acts.
CREATE TABLE unsealed_acts (      -- entries without a segment
	account INTEGER NOT NULL,
	chain INTEGER NOT NULL,
	number INTEGER NOT NULL,       -- within its chain, from 1
	PRIMARY KEY (account, chain, number)
) WITHOUT ROWID;
-- The expiry of a key, and the reason of its revocation.
ALTER TABLE api_keys ADD COLUMN expires_at BIGINT; -- NULL: none
ALTER TABLE api_keys ADD COLUMN revoked_for TEXT; -- NULL: no reason was given
-- Users of the console: identity, roles by account, credentials. All of it is global, since a user may have several
-- accounts. Of secrets only the SHA-256 is stored.
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
	taken_up BIGINT NOT NULL DEFAULT 1, -- 0: an invitation that was not accepted yet
	seen_at BIGINT,               -- the last session in the account, up to a minute old; NULL: none
	PRIMARY KEY (user_id, account)
) WITHOUT ROWID;
CREATE INDEX memberships_by_account ON memberships (account, user_id);
CREATE TABLE sign_in_links (
	digest BLOB PRIMARY KEY,      -- of the link's secret
	asked TEXT NOT NULL,          -- the request; its links are used up together
	user_id TEXT NOT NULL,
	browser BLOB,                 -- of the cookie of the requesting browser; NULL: any (an operator's link)
	made_at BIGINT NOT NULL,
	expires_at BIGINT NOT NULL,
	used_at BIGINT,
	standing TEXT NOT NULL DEFAULT 'unknown', -- of the requester: session, known, unknown; each has a limit of its own
	network TEXT                  -- of the requester: links of unknown browsers are limited by network
) WITHOUT ROWID;
CREATE INDEX sign_in_links_by_user ON sign_in_links (user_id, made_at);
CREATE TABLE known_browsers (     -- browsers in which a user signed in before
	digest BLOB NOT NULL,         -- of the browser's cookie
	user_id TEXT NOT NULL,
	seen_at BIGINT NOT NULL,      -- the last sign-in
	network TEXT,                 -- of the last sign-in
	PRIMARY KEY (digest, user_id)
) WITHOUT ROWID;
CREATE INDEX known_browsers_by_user ON known_browsers (user_id, seen_at);
CREATE TABLE sessions (
	digest BLOB PRIMARY KEY,      -- of the cookie
	session_id TEXT NOT NULL UNIQUE,
	user_id TEXT NOT NULL,
	account BIGINT NOT NULL,      -- the chosen one
	made_at BIGINT NOT NULL,
	seen_at BIGINT NOT NULL,      -- up to a minute old
	signed_in_at BIGINT NOT NULL,
	by_passkey BIGINT NOT NULL,
	ended_at BIGINT,
	address TEXT NOT NULL,        -- of the client that signed in
	agent TEXT NOT NULL,          -- User-Agent of its browser
	signed_in_by TEXT             -- link, passkey, operator_link, operator_passkey
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
	used_at BIGINT,
	added_by TEXT                 -- signed_in_by of the session that added it
) WITHOUT ROWID;
CREATE INDEX passkeys_by_user ON passkeys (user_id, made_at);
CREATE TABLE passkey_challenges (
	holder BLOB PRIMARY KEY,      -- SHA-256 of the cookie of the browser that received it
	challenge BLOB NOT NULL,
	made_at BIGINT NOT NULL
) WITHOUT ROWID;
ALTER TABLE accounts ADD COLUMN passkeys_required BIGINT NOT NULL DEFAULT 0;
-- A form that is sent twice is executed once: its outcome is kept with the audit entry for a day, and answers the
-- second request.
CREATE TABLE form_numbers (
	account BIGINT NOT NULL,
	digest BLOB NOT NULL,         -- of the user, the page's number, the operation and its arguments
	act_id TEXT,                  -- NULL: under way, or of unknown outcome
	at BIGINT NOT NULL,
	PRIMARY KEY (account, digest)
) WITHOUT ROWID;
CREATE INDEX form_numbers_by_time ON form_numbers (at);
-- Mails to recipients other than the account (0: of no account).
ALTER TABLE mails ADD COLUMN recipient TEXT; -- NULL: the account's own address and language
ALTER TABLE mails ADD COLUMN language TEXT;
-- The last lookup of a top-up's customer at the payment provider, for a store that may be a copy: charges that the
-- original made after the copy are not made again.
ALTER TABLE topups ADD COLUMN looked_at BIGINT; -- NULL: none
-- The index of client_refs as sorted runs (events/client_ref_runs.h). Entries of client_refs move to it with later
-- registrations.
CREATE TABLE client_ref_runs (
	run INTEGER PRIMARY KEY,
	level BIGINT NOT NULL,
	entries BIGINT NOT NULL,
	buckets BIGINT NOT NULL,
	filled BIGINT NOT NULL,       -- of its buckets, the first ones
	goes_into BIGINT NOT NULL,    -- the run that it is being merged into; 0: none
	filter_size BIGINT NOT NULL DEFAULT 40, -- bytes for each bucket
	checksum BIGINT,
	checked BIGINT NOT NULL DEFAULT 0 -- 1: its blocks have checksums
);
CREATE TABLE client_ref_buckets (
	place INTEGER PRIMARY KEY,    -- run << 32 | bucket
	entries BLOB NOT NULL,        -- in ascending order; each: place, event, little-endian
	checksum BIGINT
);
CREATE TABLE client_ref_filters (
	place INTEGER PRIMARY KEY,    -- run << 32 | group of buckets
	filter BLOB NOT NULL,
	checksum BIGINT
);
ALTER TABLE fresh_client_refs_0 ADD COLUMN checksum BIGINT;
ALTER TABLE fresh_client_refs_1 ADD COLUMN checksum BIGINT;
-- A secret, so that a client cannot choose client_refs that collide.
INSERT INTO settings(name, value) VALUES ('client_ref_key', lower(hex(randomblob(16)))) ON CONFLICT (name) DO NOTHING;
-- New events are appended in insertion order; queries by event number use the name `events` (struct schema_arrivals in
-- db/schema.h). Existing events stay where they are.
ALTER TABLE events RENAME TO events_before;
CREATE TABLE events_arrived (
	arrival INTEGER PRIMARY KEY,
	event BIGINT NOT NULL,        -- the rest as in events_before
	account BIGINT NOT NULL,
	key BIGINT NOT NULL,
	client_ref TEXT NOT NULL,
	received_at BIGINT NOT NULL,
	occurred_at BIGINT,
	hash BLOB NOT NULL,
	config_version BIGINT NOT NULL,
	chain_hash BLOB NOT NULL,
	content BLOB,
	file_name TEXT,
	content_object TEXT,
	content_bytes BIGINT
);
CREATE INDEX events_arrived_by_object ON events_arrived(content_object) WHERE content_object IS NOT NULL;
CREATE TABLE events_runs (            -- consecutive events of a chain with consecutive arrivals
	arrival INTEGER PRIMARY KEY,  -- of the first
	event BIGINT NOT NULL,        -- the first
	count BIGINT NOT NULL,
	place BIGINT NOT NULL,        -- among the chain's runs, from 1
	previous BIGINT NOT NULL,     -- the previous run; 0: none
	jump BIGINT NOT NULL,         -- an earlier run (skip list); 0: none
	jump_key BIGINT NOT NULL,
	jump_place BIGINT NOT NULL
);
ALTER TABLE chains ADD COLUMN last_run BIGINT NOT NULL DEFAULT 0; -- in events_runs; 0: none
-- A list of unpaid events looks up each event; this index gives a range of them in order.
CREATE INDEX unpaid_events_by_event ON unpaid_events(account, event);
-- For other programs, which do not know runs: all events, in no order.
CREATE VIEW events AS
	SELECT event, account, key, client_ref, received_at, occurred_at, hash, config_version, chain_hash, content,
		file_name, content_object, content_bytes FROM events_before
	UNION ALL SELECT event, account, key, client_ref, received_at, occurred_at, hash, config_version, chain_hash, content,
		file_name, content_object, content_bytes FROM events_arrived;
DROP INDEX IF EXISTS segments_of_round;
CREATE INDEX segments_by_place ON segments(round, place);
-- The signed list of the signers, in its last version. Global; one row.
CREATE TABLE signer_lists (
	number BIGINT PRIMARY KEY,    -- 1
	state BLOB NOT NULL,          -- digest of its sources
	signed_at BIGINT NOT NULL,
	document BLOB NOT NULL        -- CMS, with the list inside
);
-- The tax of a purchase is fixed when it is created, and the provider is asked for the total of that time. NULL: created
-- by version 0.1, which did not record these.
ALTER TABLE purchases ADD COLUMN tax_rate BIGINT; -- hundredths of a percent
ALTER TABLE purchases ADD COLUMN account_name TEXT;
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
