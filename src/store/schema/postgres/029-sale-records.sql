-- A receipt says what held when the purchase was created: the tax is reckoned then, and the provider is asked for
-- the total of then. NULL: from before these were recorded.
ALTER TABLE purchases ADD COLUMN tax_rate BIGINT; -- hundredths of a percent
ALTER TABLE purchases ADD COLUMN account_name TEXT COLLATE "C";
