-- Money: how accounts pay, packs on sale, purchases, what is under way at the payment provider, and
-- automatic top-ups. Amounts are in minor units (cents, pence).

CREATE TABLE account_billing (
	account BIGINT PRIMARY KEY,
	country TEXT,                 -- ISO 3166-1 alpha-2
	region TEXT,                  -- pricing region of its own; NULL: the country's
	tax_rate BIGINT NOT NULL,     -- hundredths of a percent, on top of net prices
	customer TEXT,                -- the provider's name of the customer
	payment_method TEXT           -- the provider's name of the default method
);

CREATE TABLE packs (
	account BIGINT NOT NULL,      -- 0: on sale to everybody; else a custom pack of that account
	number BIGINT NOT NULL,
	pack_id TEXT NOT NULL UNIQUE,
	name TEXT NOT NULL,
	credits BIGINT NOT NULL,
	amount BIGINT NOT NULL,       -- net
	currency TEXT NOT NULL,       -- EUR, GBP, USD
	created_at BIGINT NOT NULL,
	withdrawn_at BIGINT,          -- NULL: on sale
	PRIMARY KEY (account, number)
) WITHOUT ROWID;

-- What is bought stands as it was when the purchase was created, whatever becomes of the pack.
CREATE TABLE purchases (
	account BIGINT NOT NULL,
	number BIGINT NOT NULL,
	sale_id TEXT NOT NULL UNIQUE,
	pack_id TEXT NOT NULL,
	description TEXT NOT NULL,    -- as the customer reads it; the same in every try of a payment
	credits BIGINT NOT NULL,
	amount BIGINT NOT NULL,       -- net
	tax BIGINT NOT NULL,
	currency TEXT NOT NULL,
	country TEXT,
	customer TEXT,
	payment_method TEXT,
	provider TEXT NOT NULL,       -- manual, stripe
	automatic BIGINT NOT NULL,    -- made by a top-up
	state TEXT NOT NULL,          -- pending, paid, canceled, rejected, refunded, reverted
	created_at BIGINT NOT NULL,
	paid_at BIGINT,
	ended_at BIGINT,              -- canceled, rejected, refunded, reverted
	paid_entry BIGINT,            -- number of the credit entry that brought the credits
	returned_entry BIGINT,        -- of the one that took them back
	reference TEXT,               -- the provider's name of the payment
	payment_url TEXT,             -- page to pay by hand
	PRIMARY KEY (account, number)
) WITHOUT ROWID;
CREATE INDEX purchases_by_reference ON purchases(reference) WHERE reference IS NOT NULL;

-- One row for each attempt at charging or giving back, written before the provider hears of it. Its
-- idempotency key is the same in every try until the outcome is known.
CREATE TABLE payments (
	account BIGINT NOT NULL,
	number BIGINT NOT NULL,
	purchase BIGINT NOT NULL,
	action TEXT NOT NULL,         -- charge, refund
	provider TEXT NOT NULL,
	idempotency_key TEXT NOT NULL,
	state TEXT NOT NULL,          -- due: to be tried; waiting: taken on by the provider; over
	created_at BIGINT NOT NULL,
	first_try_at BIGINT,
	attempts BIGINT NOT NULL DEFAULT 0,
	next_try_at BIGINT NOT NULL,  -- leases push it forward
	lease TEXT,                   -- who works on it
	reference TEXT,
	outcome TEXT,                 -- once over
	last_error TEXT,
	PRIMARY KEY (account, number)
) WITHOUT ROWID;
CREATE INDEX payments_due ON payments(next_try_at) WHERE state <> 'over';
CREATE INDEX payments_of_purchase ON payments(account, purchase);

CREATE TABLE topups (
	account BIGINT PRIMARY KEY,
	enabled BIGINT NOT NULL,
	threshold BIGINT NOT NULL,    -- credits
	pack_id TEXT NOT NULL,
	daily_max BIGINT NOT NULL,    -- purchases in a UTC day
	purchase BIGINT,              -- number of the one under way
	failed_at BIGINT,             -- the last failure, which turned it off
	reason TEXT
);
CREATE INDEX topups_enabled ON topups(account) WHERE enabled = 1 AND purchase IS NULL;
