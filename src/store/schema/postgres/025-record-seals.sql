-- Acts are sealed in the rounds, as events are. Their segments are rows of segments: chain -2 holds an
-- account's acts, chain -4 its urgent ones, which have negative numbers in acts.
CREATE TABLE unsealed_acts (      -- those in no segment yet
	account BIGINT NOT NULL,
	chain BIGINT NOT NULL,
	number BIGINT NOT NULL,       -- within its chain, from 1
	PRIMARY KEY (account, chain, number)
);
INSERT INTO unsealed_acts (account, chain, number)
	SELECT account, CASE WHEN number > 0 THEN -2 ELSE -4 END, ABS(number) FROM acts;
