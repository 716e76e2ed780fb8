-- The list of the signers as the service signed it last. Global; one row.
CREATE TABLE signer_lists (
	number BIGINT PRIMARY KEY,    -- 1
	state BLOB NOT NULL,          -- digest of what the list is made of
	signed_at BIGINT NOT NULL,
	document BLOB NOT NULL        -- CMS, with the list inside
);
