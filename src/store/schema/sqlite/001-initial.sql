-- Kind: stop
-- Every row belongs to an account, the first column of its primary key, except in a few global
-- tables: settings, api_keys (found by digest), seal_rounds (one timestamp for the chains
-- of all accounts), leases and certification_numbers. Accounts, channels, chains and keys have small numbers,
-- unique in the store; `chain` is channel * 2 for the live chain, channel * 2 + 1 for the test chain.
-- In `events` the chain number is part of the key, so that the key is one integer and SQLite stores a
-- chain's events together; queries also name the account.
-- Times are microseconds since 1970 (UTC). Digests are blobs.

CREATE TABLE settings (           -- global: facts of the installation itself
	name TEXT PRIMARY KEY,
	value TEXT NOT NULL
);

CREATE TABLE accounts (
	account BIGINT PRIMARY KEY,
	account_id TEXT NOT NULL UNIQUE,
	name TEXT NOT NULL,
	email TEXT,
	language TEXT NOT NULL DEFAULT 'en',
	created_at BIGINT NOT NULL,
	active_at BIGINT NOT NULL,    -- day of the last registration, certification or purchase
	suspended BIGINT NOT NULL DEFAULT 0,
	disabled BIGINT NOT NULL DEFAULT 0,
	rate_live BIGINT,             -- requests per second; NULL: the general setting
	balance BIGINT NOT NULL DEFAULT 0,
	unpaid_events BIGINT NOT NULL DEFAULT 0,
	unpaid_limit BIGINT NOT NULL DEFAULT 100,
	last_entry BIGINT NOT NULL DEFAULT 0,
	last_unpaid BIGINT NOT NULL DEFAULT 0
);

CREATE TABLE channels (
	account BIGINT NOT NULL,
	channel BIGINT NOT NULL UNIQUE,
	channel_id TEXT NOT NULL UNIQUE,
	created_at BIGINT NOT NULL,
	suspended BIGINT NOT NULL DEFAULT 0,
	config_version BIGINT NOT NULL,
	PRIMARY KEY (account, channel)
);

CREATE TABLE channel_configs (    -- sealed: never updated, never deleted
	account BIGINT NOT NULL,
	channel BIGINT NOT NULL,
	version BIGINT NOT NULL,
	sealed_at BIGINT NOT NULL,
	modality TEXT NOT NULL,
	name TEXT NOT NULL,
	description TEXT,
	declarant TEXT NOT NULL,
	supplementary_info TEXT,
	config_hash BLOB NOT NULL,    -- SHA-256 of the configuration document
	PRIMARY KEY (account, channel, version)
);

CREATE TABLE chains (             -- the heads
	account BIGINT NOT NULL,
	chain BIGINT NOT NULL,
	created_at BIGINT NOT NULL,
	genesis_hash BLOB NOT NULL,
	last_sequence BIGINT NOT NULL DEFAULT 0,
	last_received_at BIGINT NOT NULL DEFAULT 0,
	last_chain_hash BLOB NOT NULL,            -- the genesis hash at first
	sealed_sequence BIGINT NOT NULL DEFAULT 0,
	sealed_segment BIGINT NOT NULL DEFAULT 0, -- number of the last segment
	seal_hash BLOB,                           -- digest of the last seal document
	PRIMARY KEY (account, chain)
) WITHOUT ROWID;

CREATE TABLE api_keys (           -- found by digest: global
	account BIGINT NOT NULL,
	channel BIGINT NOT NULL,
	key BIGINT PRIMARY KEY,
	key_id TEXT NOT NULL UNIQUE,
	key_hash BLOB NOT NULL UNIQUE,
	last_four TEXT NOT NULL,
	mode TEXT NOT NULL,
	name TEXT,
	created_at BIGINT NOT NULL,
	revoked_at BIGINT
);
CREATE INDEX api_keys_of_channel ON api_keys(channel);

-- Events are only ever inserted. event = chain << 40 | sequence.
CREATE TABLE events (
	event INTEGER PRIMARY KEY,
	account BIGINT NOT NULL,
	key BIGINT NOT NULL,
	client_ref TEXT NOT NULL,
	received_at BIGINT NOT NULL,
	occurred_at BIGINT,
	hash BLOB NOT NULL,           -- 32 bytes: sha-256, 64 bytes: sha-512
	config_version BIGINT NOT NULL,
	chain_hash BLOB NOT NULL,
	content BLOB,                 -- canonical JSON up to 16 KiB; NULL: in the content store, or none
	file_name TEXT,               -- files only
	content_object TEXT,          -- name in the content store
	content_bytes BIGINT          -- NULL: hash-only
);
-- Contains only events with an object of their own, which housekeeping must keep.
CREATE INDEX events_by_object ON events(content_object) WHERE content_object IS NOT NULL;
-- From the first 8 bytes of SHA-256(client_ref) to the events that may hold it.
CREATE TABLE client_refs (
	account BIGINT NOT NULL,
	chain BIGINT NOT NULL,
	ref_hash BIGINT NOT NULL,
	sequence BIGINT NOT NULL,
	PRIMARY KEY (account, chain, ref_hash, sequence)
) WITHOUT ROWID;
-- Entries that are still to be moved there, in insertion order: two alternating tables
-- (settings: fresh_client_refs names the one that receives new entries).
CREATE TABLE fresh_client_refs_0 (
	entries BLOB NOT NULL         -- of a batch; each: account, event, ref_hash, little-endian
);
CREATE TABLE fresh_client_refs_1 (
	entries BLOB NOT NULL
);

-- Events not yet paid, in the order in which purchases settle them.
CREATE TABLE unpaid_events (
	account BIGINT NOT NULL,
	number BIGINT NOT NULL,
	event BIGINT NOT NULL UNIQUE,
	PRIMARY KEY (account, number)
) WITHOUT ROWID;

-- Every movement of credits; accounts.balance is their sum.
CREATE TABLE credit_entries (
	account BIGINT NOT NULL,
	number BIGINT NOT NULL,
	at BIGINT NOT NULL,
	kind TEXT NOT NULL,           -- events, settlement, purchase, revert, adjustment, fee, fee_refund
	credits BIGINT NOT NULL,      -- signed
	balance BIGINT NOT NULL,      -- after it
	chain BIGINT,                 -- kind `events`: the events that it pays
	first_sequence BIGINT,
	last_sequence BIGINT,
	reference TEXT,               -- certification, sale, reason
	PRIMARY KEY (account, number)
) WITHOUT ROWID;

-- Live events by key and UTC day ("2026-01-31"): what consumption limits count.
CREATE TABLE key_usage (
	account BIGINT NOT NULL,
	channel BIGINT NOT NULL,
	key BIGINT NOT NULL,
	day TEXT NOT NULL,
	events BIGINT NOT NULL,
	PRIMARY KEY (account, channel, key, day)
) WITHOUT ROWID;

CREATE TABLE test_usage (
	account BIGINT NOT NULL,
	day TEXT NOT NULL,
	events BIGINT NOT NULL DEFAULT 0,
	content_bytes BIGINT NOT NULL DEFAULT 0,
	certifications BIGINT NOT NULL DEFAULT 0,
	PRIMARY KEY (account, day)
) WITHOUT ROWID;

CREATE TABLE consumption_limits (
	account BIGINT NOT NULL,
	limit_id TEXT NOT NULL UNIQUE,
	channel BIGINT NOT NULL,
	key BIGINT,                   -- NULL: of the channel
	period TEXT NOT NULL,         -- day, month
	max_events BIGINT NOT NULL,
	action TEXT NOT NULL,         -- warn, block
	created_at BIGINT NOT NULL,
	notified_period TEXT,         -- last period key whose notice was written
	PRIMARY KEY (account, channel, limit_id)
) WITHOUT ROWID;

CREATE TABLE balance_thresholds (
	account BIGINT NOT NULL,
	threshold_id TEXT NOT NULL UNIQUE,
	credits BIGINT NOT NULL,
	armed BIGINT NOT NULL,
	PRIMARY KEY (account, threshold_id)
) WITHOUT ROWID;

-- The outbox: written in the transaction that causes the notice.
CREATE TABLE notices (
	account BIGINT NOT NULL,
	notice INTEGER PRIMARY KEY,
	notice_id TEXT NOT NULL UNIQUE,
	type TEXT NOT NULL,
	mode TEXT NOT NULL,
	created_at BIGINT NOT NULL,
	data TEXT NOT NULL            -- JSON
);
CREATE INDEX notices_of_account ON notices(account, notice);

-- A sealing round: one timestamp over the segments of many chains. Global: chains of all accounts.
CREATE TABLE seal_rounds (
	round INTEGER PRIMARY KEY,
	root BLOB NOT NULL,
	authority TEXT NOT NULL,
	kind TEXT NOT NULL,           -- qualified, non_qualified, development
	sealed_at BIGINT NOT NULL,    -- genTime of the token
	obtained_at BIGINT NOT NULL,  -- by the local clock
	request BLOB NOT NULL,        -- DER
	response_head BLOB NOT NULL,  -- DER of the response up to the token, with which it ends
	token BLOB NOT NULL,          -- DER, ContentInfo
	token_hash BLOB NOT NULL
);

CREATE TABLE segments (
	account BIGINT NOT NULL,
	chain BIGINT NOT NULL,
	number BIGINT NOT NULL,
	segment_id TEXT NOT NULL UNIQUE,
	first_sequence BIGINT NOT NULL,
	last_sequence BIGINT NOT NULL,
	round BIGINT NOT NULL,
	root BLOB NOT NULL,
	document TEXT NOT NULL,       -- the seal document, canonical
	nodes BLOB NOT NULL,          -- roots over each 128 leaves, so that a proof reads few events
	path BLOB NOT NULL,           -- sibling hashes from the segment's root up to the round's
	PRIMARY KEY (account, chain, number)
);
CREATE INDEX segments_by_sequence ON segments(account, chain, first_sequence);
CREATE INDEX segments_of_round ON segments(round);

-- Live chains with events after their last segment: the input of the sealer. The batch that
-- registers the first such event inserts the row, and the segment that covers the last one deletes
-- it, so that batches on a chain that is already unsealed write nothing here.
CREATE TABLE unsealed_chains (
	account BIGINT NOT NULL,
	chain BIGINT NOT NULL,
	PRIMARY KEY (account, chain)
) WITHOUT ROWID;
CREATE TABLE leases (             -- global: jobs that one node does at a time
	name TEXT PRIMARY KEY,
	holder TEXT NOT NULL,
	expires_at BIGINT NOT NULL
);

CREATE TABLE certifications (
	account BIGINT NOT NULL,
	channel BIGINT NOT NULL,
	chain BIGINT NOT NULL,
	certification INTEGER PRIMARY KEY,
	certification_id TEXT NOT NULL UNIQUE,
	key BIGINT NOT NULL,
	status TEXT NOT NULL,         -- processing, completed, failed
	progress_permille BIGINT NOT NULL DEFAULT 0,
	requested_at BIGINT NOT NULL,
	completed_at BIGINT,
	language TEXT NOT NULL,
	range_from BIGINT,            -- as requested
	range_to BIGINT,
	range_seq_from BIGINT,
	range_seq_to BIGINT,
	first_sequence BIGINT NOT NULL, -- as frozen
	last_sequence BIGINT NOT NULL,
	config_versions TEXT NOT NULL,  -- JSON array
	fee BIGINT NOT NULL DEFAULT 0,
	verification_code TEXT UNIQUE,
	incident_id TEXT,
	attempts BIGINT NOT NULL DEFAULT 0,
	next_attempt_at BIGINT NOT NULL,  -- jobs: when it may be tried; leases push it forward
	lease TEXT,                       -- holder of the job's lease
	last_error TEXT
);
CREATE INDEX certifications_of_chain ON certifications(account, chain, certification);
CREATE INDEX certifications_waiting ON certifications(next_attempt_at) WHERE status = 'processing';

-- Issued files: written with the status `completed`, never earlier.
CREATE TABLE issued_files (
	account BIGINT NOT NULL,
	certification BIGINT NOT NULL,
	name TEXT NOT NULL,           -- name of the downloaded file
	kind TEXT NOT NULL,           -- report, evidence, part
	language TEXT,                -- of a report: es, en
	object TEXT NOT NULL,         -- name in the content store
	size_bytes BIGINT NOT NULL,
	sha256 BLOB NOT NULL,
	PRIMARY KEY (account, certification, name)
) WITHOUT ROWID;
CREATE INDEX issued_files_by_digest ON issued_files(sha256);
CREATE INDEX issued_files_by_object ON issued_files(object);
CREATE TABLE certification_numbers ( -- global: the numbers of a year
	year BIGINT NOT NULL,
	mode TEXT NOT NULL,
	last_number BIGINT NOT NULL,
	PRIMARY KEY (year, mode)
) WITHOUT ROWID;
