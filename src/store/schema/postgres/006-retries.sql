-- What is sent again, which goes before what was never sent.
CREATE INDEX webhook_deliveries_retries ON webhook_deliveries(account, endpoint, next_attempt_at)
	WHERE status = 'waiting' AND tries > 0;
