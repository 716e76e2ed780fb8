-- How long a key lasts, and why it was revoked.
ALTER TABLE api_keys ADD COLUMN expires_at BIGINT; -- NULL: it does not end by itself
ALTER TABLE api_keys ADD COLUMN revoked_for TEXT; -- NULL: nobody said why
