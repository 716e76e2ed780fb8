-- Strangers' links are counted by the network that they were asked for from, so that those of one network use up
-- nothing of another's.
ALTER TABLE sign_in_links ADD COLUMN network TEXT; -- of who asked
ALTER TABLE known_browsers ADD COLUMN network TEXT; -- where the user last signed in with it
-- Whoever owns an account can make anybody a member: what the account asks of its members elsewhere holds for who has
-- worked in it.
ALTER TABLE memberships ADD COLUMN taken_up BIGINT NOT NULL DEFAULT 1;
