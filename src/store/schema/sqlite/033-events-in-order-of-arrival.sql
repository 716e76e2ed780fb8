-- Events are kept in the order in which they came, and read by their numbers under the name `events` (struct
-- schema_arrivals in db/schema.h). Those of before stay where they are.
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
CREATE TABLE events_runs (            -- consecutive events of a chain that came one behind the other
	arrival INTEGER PRIMARY KEY,  -- of the first
	event BIGINT NOT NULL,        -- the first
	count BIGINT NOT NULL,
	place BIGINT NOT NULL,        -- among the chain's runs, from 1
	previous BIGINT NOT NULL,     -- the run before; 0: none
	jump BIGINT NOT NULL,         -- a run further back; 0: past the first
	jump_key BIGINT NOT NULL,
	jump_place BIGINT NOT NULL
);
ALTER TABLE chains ADD COLUMN last_run BIGINT NOT NULL DEFAULT 0; -- in events_runs; 0: none
-- A list of unpaid events looks each of them up, so it finds those of a range, in their order.
CREATE INDEX unpaid_events_by_event ON unpaid_events(account, event);
-- For other programs, which know nothing of runs: everything, in no order.
CREATE VIEW events AS
	SELECT event, account, key, client_ref, received_at, occurred_at, hash, config_version, chain_hash, content,
		file_name, content_object, content_bytes FROM events_before
	UNION ALL SELECT event, account, key, client_ref, received_at, occurred_at, hash, config_version, chain_hash, content,
		file_name, content_object, content_bytes FROM events_arrived;
