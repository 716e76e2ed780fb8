-- Kind: stop
-- The evidence queue is processed in the order of waiting; the oldest entry is reported.
CREATE INDEX evidence_queue_by_since
	ON evidence_queue (since, account, certification, next_attempt_at);
