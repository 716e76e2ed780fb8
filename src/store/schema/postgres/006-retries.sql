-- Kind: stop
-- Index of retries, which are sent before first attempts.
CREATE INDEX webhook_deliveries_retries ON webhook_deliveries(account, endpoint, next_attempt_at)
	WHERE status = 'waiting' AND tries > 0;
