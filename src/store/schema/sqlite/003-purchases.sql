-- Kind: stop
-- Billing of accounts, packs on sale, purchases, payments at the provider, and automatic top-ups.
-- Amounts are in minor units (cents, pence).

CREATE TABLE account_billing (
	account BIGINT PRIMARY KEY,
	country TEXT,                 -- ISO 3166-1 alpha-2
	region TEXT,                  -- pricing region set for the account; NULL: the country's
	tax_rate BIGINT NOT NULL,     -- hundredths of a percent, on top of net prices
	customer TEXT,                -- the provider's identifier of the customer
	payment_method TEXT           -- the provider's identifier of the default method
);

CREATE TABLE packs (
	account BIGINT NOT NULL,      -- 0: on sale to all accounts; else a custom pack of that account
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

-- A purchase keeps the values of the pack at its creation; later changes of the pack do not affect it.
CREATE TABLE purchases (
	account BIGINT NOT NULL,
	number BIGINT NOT NULL,
	sale_id TEXT NOT NULL UNIQUE,
	pack_id TEXT NOT NULL,
	description TEXT NOT NULL,    -- shown to the customer; the same in every attempt of a payment
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
	paid_entry BIGINT,            -- number of the credit entry that added the credits
	returned_entry BIGINT,        -- number of the entry that took them back
	reference TEXT,               -- the provider's identifier of the payment
	payment_url TEXT,             -- page for manual payment
	PRIMARY KEY (account, number)
) WITHOUT ROWID;
CREATE INDEX purchases_by_reference ON purchases(reference) WHERE reference IS NOT NULL;

-- One row for each charge or refund, written before the request to the provider. The idempotency key
-- is the same in every attempt until the outcome is known.
CREATE TABLE payments (
	account BIGINT NOT NULL,
	number BIGINT NOT NULL,
	purchase BIGINT NOT NULL,
	action TEXT NOT NULL,         -- charge, refund
	provider TEXT NOT NULL,
	idempotency_key TEXT NOT NULL,
	state TEXT NOT NULL,          -- due: to be sent; waiting: accepted by the provider; over
	created_at BIGINT NOT NULL,
	first_try_at BIGINT,
	attempts BIGINT NOT NULL DEFAULT 0,
	next_try_at BIGINT NOT NULL,  -- leases push it forward
	lease TEXT,                   -- holder of the job's lease
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
	purchase BIGINT,              -- number of the purchase in progress
	failed_at BIGINT,             -- the last failure, which disabled it
	reason TEXT
);
CREATE INDEX topups_enabled ON topups(account) WHERE enabled = 1 AND purchase IS NULL;
