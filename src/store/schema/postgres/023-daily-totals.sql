-- More totals by UTC day (1970-01-01 is 0), each kept by the transactions that it counts, as
-- daily_usage is. The program that applies this step fills them from what is there.
--
-- Movements of credits but those of registrations, which daily_usage tells: from both, and the
-- balance as it stands, follows what it was at the end of any day.
CREATE TABLE daily_credits (
	account BIGINT NOT NULL,
	day BIGINT NOT NULL,
	kind TEXT NOT NULL,           -- as in credit_entries, never `events`
	movements BIGINT NOT NULL,
	credits BIGINT NOT NULL,      -- their sum
	PRIMARY KEY (account, day, kind)
);
-- How long events waited for the timestamp of their round: for each segment, from its first event
-- on. Times in milliseconds; every event is counted in one of the `within`, or in none: longer.
CREATE TABLE daily_seals (
	account BIGINT NOT NULL,
	day BIGINT NOT NULL,          -- of the timestamp's coming
	segments BIGINT NOT NULL,
	events BIGINT NOT NULL,
	delay_ms BIGINT NOT NULL,     -- sum over all events
	longest_ms BIGINT NOT NULL,
	within_1s BIGINT NOT NULL,
	within_10s BIGINT NOT NULL,
	within_1m BIGINT NOT NULL,
	within_10m BIGINT NOT NULL,
	within_1h BIGINT NOT NULL,
	within_1d BIGINT NOT NULL,
	PRIMARY KEY (account, day)
);
-- What was tried at endpoints of webhooks, and how long what was delivered took: from the notice,
-- or from the last asking for its replay.
CREATE TABLE daily_deliveries (
	account BIGINT NOT NULL,
	day BIGINT NOT NULL,          -- of the attempt
	endpoint BIGINT NOT NULL,
	attempts BIGINT NOT NULL,
	delivered BIGINT NOT NULL,
	failed BIGINT NOT NULL,       -- deliveries that used up their schedule
	delay_ms BIGINT NOT NULL,     -- of what was delivered
	longest_ms BIGINT NOT NULL,
	within_1s BIGINT NOT NULL,
	within_10s BIGINT NOT NULL,
	within_1m BIGINT NOT NULL,
	within_10m BIGINT NOT NULL,
	within_1h BIGINT NOT NULL,
	within_1d BIGINT NOT NULL,
	PRIMARY KEY (account, day, endpoint)
);
ALTER TABLE segments ADD COLUMN received_at BIGINT; -- of its first event; NULL in those of before
CREATE INDEX certifications_under_way ON certifications(account, certification)
	WHERE status = 'processing';
