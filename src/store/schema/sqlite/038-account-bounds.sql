-- What an account may hold and do at most. NULL: as the general setting says.
ALTER TABLE accounts ADD COLUMN bound_rate BIGINT;           -- requests per second of all live keys together
ALTER TABLE accounts ADD COLUMN bound_channels BIGINT;
ALTER TABLE accounts ADD COLUMN bound_keys BIGINT;           -- that are not revoked
ALTER TABLE accounts ADD COLUMN bound_certifications BIGINT; -- live ones, of a UTC day
ALTER TABLE accounts ADD COLUMN bound_stored_bytes BIGINT;   -- content and issued documents
CREATE INDEX api_keys_account ON api_keys(account) WHERE revoked_at IS NULL;
