-- Kind: stop
-- The schema of step 001 for PostgreSQL. It has the tables and columns of SQLite, with these differences:
-- - the account is the first column of every primary key, so that all tables can be distributed by
--   it. No constraint is unique over several accounts: public identifiers are random and only
--   indexed. Tables without an account (global): settings, api_keys (found by digest), seal_rounds,
--   leases and certification_numbers;
-- - events has ref_hash, the first 8 bytes of SHA-256(client_ref), and an index on it instead of
--   the tables of client_refs;
-- - texts are compared byte by byte.
-- Times are microseconds since 1970 (UTC). Digests are bytes.

CREATE TABLE settings (           -- global: facts of the installation itself
	name TEXT COLLATE "C" PRIMARY KEY,
	value TEXT COLLATE "C" NOT NULL
);

CREATE TABLE accounts (
	account BIGINT PRIMARY KEY,
	account_id TEXT COLLATE "C" NOT NULL,
	name TEXT COLLATE "C" NOT NULL,
	email TEXT COLLATE "C",
	language TEXT COLLATE "C" NOT NULL DEFAULT 'en',
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
CREATE INDEX accounts_by_id ON accounts(account_id);

CREATE TABLE channels (
	account BIGINT NOT NULL,
	channel BIGINT NOT NULL,
	channel_id TEXT COLLATE "C" NOT NULL,
	created_at BIGINT NOT NULL,
	suspended BIGINT NOT NULL DEFAULT 0,
	config_version BIGINT NOT NULL,
	PRIMARY KEY (account, channel)
);
CREATE INDEX channels_by_id ON channels(channel_id);

CREATE TABLE channel_configs (    -- sealed: never updated, never deleted
	account BIGINT NOT NULL,
	channel BIGINT NOT NULL,
	version BIGINT NOT NULL,
	sealed_at BIGINT NOT NULL,
	modality TEXT COLLATE "C" NOT NULL,
	name TEXT COLLATE "C" NOT NULL,
	description TEXT COLLATE "C",
	declarant TEXT COLLATE "C" NOT NULL,
	supplementary_info TEXT COLLATE "C",
	config_hash BYTEA NOT NULL,    -- SHA-256 of the configuration document
	PRIMARY KEY (account, channel, version)
);

CREATE TABLE chains (             -- the heads
	account BIGINT NOT NULL,
	chain BIGINT NOT NULL,
	created_at BIGINT NOT NULL,
	genesis_hash BYTEA NOT NULL,
	last_sequence BIGINT NOT NULL DEFAULT 0,
	last_received_at BIGINT NOT NULL DEFAULT 0,
	last_chain_hash BYTEA NOT NULL,            -- the genesis hash at first
	sealed_sequence BIGINT NOT NULL DEFAULT 0,
	sealed_segment BIGINT NOT NULL DEFAULT 0, -- number of the last segment
	seal_hash BYTEA,                           -- digest of the last seal document
	PRIMARY KEY (account, chain)
);

CREATE TABLE api_keys (           -- found by digest: global
	account BIGINT NOT NULL,
	channel BIGINT NOT NULL,
	key BIGINT PRIMARY KEY,
	key_id TEXT COLLATE "C" NOT NULL UNIQUE,
	key_hash BYTEA NOT NULL UNIQUE,
	last_four TEXT COLLATE "C" NOT NULL,
	mode TEXT COLLATE "C" NOT NULL,
	name TEXT COLLATE "C",
	created_at BIGINT NOT NULL,
	revoked_at BIGINT
);
CREATE INDEX api_keys_of_channel ON api_keys(channel);

-- Events are only ever inserted. event = chain << 40 | sequence.
CREATE TABLE events (
	account BIGINT NOT NULL,
	event BIGINT NOT NULL,
	key BIGINT NOT NULL,
	ref_hash BIGINT NOT NULL,
	client_ref TEXT COLLATE "C" NOT NULL,
	received_at BIGINT NOT NULL,
	occurred_at BIGINT,
	hash BYTEA NOT NULL,           -- 32 bytes: sha-256, 64 bytes: sha-512
	config_version BIGINT NOT NULL,
	chain_hash BYTEA NOT NULL,
	content BYTEA,                 -- canonical JSON up to 16 KiB; NULL: in the content store, or none
	file_name TEXT COLLATE "C",               -- files only
	content_object TEXT COLLATE "C",          -- name in the content store
	content_bytes BIGINT,         -- NULL: hash-only
	PRIMARY KEY (account, event)
);
CREATE INDEX events_by_ref_hash ON events(account, ref_hash);
-- Contains only events with an object of their own, which housekeeping must keep.
CREATE INDEX events_by_object ON events(content_object) WHERE content_object IS NOT NULL;
-- Events not yet paid, in the order in which purchases settle them.
CREATE TABLE unpaid_events (
	account BIGINT NOT NULL,
	number BIGINT NOT NULL,
	event BIGINT NOT NULL,
	PRIMARY KEY (account, number),
	UNIQUE (account, event)
);

-- Every movement of credits; accounts.balance is their sum.
CREATE TABLE credit_entries (
	account BIGINT NOT NULL,
	number BIGINT NOT NULL,
	at BIGINT NOT NULL,
	kind TEXT COLLATE "C" NOT NULL,           -- events, settlement, purchase, revert, adjustment, fee, fee_refund
	credits BIGINT NOT NULL,      -- signed
	balance BIGINT NOT NULL,      -- after it
	chain BIGINT,                 -- kind `events`: the events that it pays
	first_sequence BIGINT,
	last_sequence BIGINT,
	reference TEXT COLLATE "C",               -- certification, sale, reason
	PRIMARY KEY (account, number)
);

-- Live events by key and UTC day ("2026-01-31"): what consumption limits count.
CREATE TABLE key_usage (
	account BIGINT NOT NULL,
	channel BIGINT NOT NULL,
	key BIGINT NOT NULL,
	day TEXT COLLATE "C" NOT NULL,
	events BIGINT NOT NULL,
	PRIMARY KEY (account, channel, key, day)
);

CREATE TABLE test_usage (
	account BIGINT NOT NULL,
	day TEXT COLLATE "C" NOT NULL,
	events BIGINT NOT NULL DEFAULT 0,
	content_bytes BIGINT NOT NULL DEFAULT 0,
	certifications BIGINT NOT NULL DEFAULT 0,
	PRIMARY KEY (account, day)
);

CREATE TABLE consumption_limits (
	account BIGINT NOT NULL,
	limit_id TEXT COLLATE "C" NOT NULL,
	channel BIGINT NOT NULL,
	key BIGINT,                   -- NULL: of the channel
	period TEXT COLLATE "C" NOT NULL,         -- day, month
	max_events BIGINT NOT NULL,
	action TEXT COLLATE "C" NOT NULL,         -- warn, block
	created_at BIGINT NOT NULL,
	notified_period TEXT COLLATE "C",         -- last period key whose notice was written
	PRIMARY KEY (account, channel, limit_id)
);
CREATE INDEX consumption_limits_by_id ON consumption_limits(limit_id);

CREATE TABLE balance_thresholds (
	account BIGINT NOT NULL,
	threshold_id TEXT COLLATE "C" NOT NULL,
	credits BIGINT NOT NULL,
	armed BIGINT NOT NULL,
	PRIMARY KEY (account, threshold_id)
);
CREATE INDEX balance_thresholds_by_id ON balance_thresholds(threshold_id);

-- The outbox: written in the transaction that causes the notice.
CREATE TABLE notices (
	account BIGINT NOT NULL,
	notice BIGINT GENERATED BY DEFAULT AS IDENTITY,
	notice_id TEXT COLLATE "C" NOT NULL,
	type TEXT COLLATE "C" NOT NULL,
	mode TEXT COLLATE "C" NOT NULL,
	created_at BIGINT NOT NULL,
	data TEXT COLLATE "C" NOT NULL, -- JSON
	PRIMARY KEY (account, notice)
);
CREATE INDEX notices_by_id ON notices(notice_id);

-- A sealing round: one timestamp over the segments of many chains. Global: chains of all accounts.
CREATE TABLE seal_rounds (
	round BIGINT PRIMARY KEY,
	root BYTEA NOT NULL,
	authority TEXT COLLATE "C" NOT NULL,
	kind TEXT COLLATE "C" NOT NULL,           -- qualified, non_qualified, development
	sealed_at BIGINT NOT NULL,    -- genTime of the token
	obtained_at BIGINT NOT NULL,  -- by the local clock
	request BYTEA NOT NULL,        -- DER
	response_head BYTEA NOT NULL,  -- DER of the response up to the token, with which it ends
	token BYTEA NOT NULL,          -- DER, ContentInfo
	token_hash BYTEA NOT NULL
);

CREATE TABLE segments (
	account BIGINT NOT NULL,
	chain BIGINT NOT NULL,
	number BIGINT NOT NULL,
	segment_id TEXT COLLATE "C" NOT NULL,
	first_sequence BIGINT NOT NULL,
	last_sequence BIGINT NOT NULL,
	round BIGINT NOT NULL,
	root BYTEA NOT NULL,
	document TEXT COLLATE "C" NOT NULL,       -- the seal document, canonical
	nodes BYTEA NOT NULL,          -- roots over each 128 leaves, so that a proof reads few events
	path BYTEA NOT NULL,           -- sibling hashes from the segment's root up to the round's
	PRIMARY KEY (account, chain, number)
);
CREATE INDEX segments_by_id ON segments(segment_id);
CREATE INDEX segments_by_sequence ON segments(account, chain, first_sequence);
CREATE INDEX segments_of_round ON segments(round);

-- Live chains with events after their last segment: the input of the sealer. The batch that
-- registers the first such event inserts the row, and the segment that covers the last one deletes
-- it, so that batches on a chain that is already unsealed write nothing here.
CREATE TABLE unsealed_chains (
	account BIGINT NOT NULL,
	chain BIGINT NOT NULL,
	PRIMARY KEY (account, chain)
);
CREATE TABLE leases (             -- global: jobs that one node does at a time
	name TEXT COLLATE "C" PRIMARY KEY,
	holder TEXT COLLATE "C" NOT NULL,
	expires_at BIGINT NOT NULL
);

CREATE TABLE certifications (
	account BIGINT NOT NULL,
	channel BIGINT NOT NULL,
	chain BIGINT NOT NULL,
	certification BIGINT GENERATED BY DEFAULT AS IDENTITY,
	certification_id TEXT COLLATE "C" NOT NULL,
	key BIGINT NOT NULL,
	status TEXT COLLATE "C" NOT NULL,         -- processing, completed, failed
	progress_permille BIGINT NOT NULL DEFAULT 0,
	requested_at BIGINT NOT NULL,
	completed_at BIGINT,
	language TEXT COLLATE "C" NOT NULL,
	range_from BIGINT,            -- as requested
	range_to BIGINT,
	range_seq_from BIGINT,
	range_seq_to BIGINT,
	first_sequence BIGINT NOT NULL, -- as frozen
	last_sequence BIGINT NOT NULL,
	config_versions TEXT COLLATE "C" NOT NULL,  -- JSON array
	fee BIGINT NOT NULL DEFAULT 0,
	verification_code TEXT COLLATE "C",
	incident_id TEXT COLLATE "C",
	attempts BIGINT NOT NULL DEFAULT 0,
	next_attempt_at BIGINT NOT NULL,  -- jobs: when it may be tried; leases push it forward
	lease TEXT COLLATE "C",                       -- holder of the job's lease
	last_error TEXT COLLATE "C",
	PRIMARY KEY (account, certification)
);
CREATE INDEX certifications_by_id ON certifications(certification_id);
CREATE INDEX certifications_by_code ON certifications(verification_code);
CREATE INDEX certifications_of_chain ON certifications(account, chain, certification);
CREATE INDEX certifications_waiting ON certifications(next_attempt_at) WHERE status = 'processing';

-- Issued files: written with the status `completed`, never earlier.
CREATE TABLE issued_files (
	account BIGINT NOT NULL,
	certification BIGINT NOT NULL,
	name TEXT COLLATE "C" NOT NULL,           -- name of the downloaded file
	kind TEXT COLLATE "C" NOT NULL,           -- report, evidence, part
	language TEXT COLLATE "C",                -- of a report: es, en
	object TEXT COLLATE "C" NOT NULL,         -- name in the content store
	size_bytes BIGINT NOT NULL,
	sha256 BYTEA NOT NULL,
	PRIMARY KEY (account, certification, name)
);
CREATE INDEX issued_files_by_digest ON issued_files(sha256);
CREATE INDEX issued_files_by_object ON issued_files(object);
CREATE TABLE certification_numbers ( -- global: the numbers of a year
	year BIGINT NOT NULL,
	mode TEXT COLLATE "C" NOT NULL,
	last_number BIGINT NOT NULL,
	PRIMARY KEY (year, mode)
);
