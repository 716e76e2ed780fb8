-- What waits because a replay was asked for takes turns with what is new.
ALTER TABLE webhook_deliveries ADD COLUMN replayed BIGINT NOT NULL DEFAULT 0; -- 1: queued by a replay
ALTER TABLE webhook_deliveries ADD COLUMN replayed_at BIGINT; -- when it was last; NULL: never
DROP INDEX IF EXISTS webhook_deliveries_waiting;
CREATE INDEX webhook_deliveries_turns
	ON webhook_deliveries(account, endpoint, replayed, next_attempt_at) WHERE status = 'waiting';
