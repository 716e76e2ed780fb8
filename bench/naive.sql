-- What a user would write instead of this service: a table of events, hash-chained, with one INSERT
-- for each request under a lock of its chain's head. bench/rig.py has pgbench call it.
CREATE TABLE naive_chains (
	chain INT PRIMARY KEY,
	sequence BIGINT NOT NULL,
	chain_hash BYTEA NOT NULL
);
CREATE TABLE naive_events (
	chain INT NOT NULL,
	sequence BIGINT NOT NULL,
	client_ref TEXT NOT NULL,
	received_at TIMESTAMPTZ NOT NULL,
	payload TEXT NOT NULL,
	hash BYTEA NOT NULL,
	chain_hash BYTEA NOT NULL,
	PRIMARY KEY (chain, sequence),
	UNIQUE (chain, client_ref)
);
INSERT INTO naive_chains SELECT chain, 0, sha256(''::bytea) FROM generate_series(1, 16) AS chain;

CREATE FUNCTION naive_register(which INT, reference TEXT, declared TEXT) RETURNS BIGINT
LANGUAGE plpgsql AS $$
DECLARE
	head naive_chains;
	content_hash BYTEA := sha256(convert_to(declared, 'UTF8'));
	received TIMESTAMPTZ := clock_timestamp();
	linked BYTEA;
BEGIN
	SELECT * INTO head FROM naive_chains WHERE chain = which FOR UPDATE;
	linked := sha256(head.chain_hash || content_hash ||
	                 convert_to(reference || received::text, 'UTF8'));
	INSERT INTO naive_events VALUES (which, head.sequence + 1, reference, received, declared,
	                                 content_hash, linked);
	UPDATE naive_chains SET sequence = head.sequence + 1, chain_hash = linked WHERE chain = which;
	RETURN head.sequence + 1;
END $$;
