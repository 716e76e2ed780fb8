-- Certifications that wait are taken up in the order of their waiting, and the first of them is told.
CREATE INDEX evidence_queue_by_since
	ON evidence_queue (since, account, certification, next_attempt_at);
