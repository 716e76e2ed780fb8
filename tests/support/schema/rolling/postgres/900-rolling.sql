-- Kind: rolling
-- A step for tests: what a version may add while older nodes serve, to tables that they write all the time.
CREATE TABLE later_facts (
	account BIGINT NOT NULL,
	number BIGINT NOT NULL,
	fact TEXT NOT NULL,
	PRIMARY KEY (account, number)
);
CREATE INDEX later_facts_by_fact ON later_facts(fact);
ALTER TABLE accounts ADD COLUMN later_count BIGINT NOT NULL DEFAULT 0;
ALTER TABLE chains ADD COLUMN later_note TEXT;
