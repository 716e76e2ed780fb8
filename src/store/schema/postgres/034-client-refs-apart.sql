-- An index that begins with the account is one that a plan made while the table is empty may take for the look-up of
-- an event by its number, and that plan is kept: it reads all events of the account. The account stays in it, as many
-- accounts may have the same client_ref.
DROP INDEX IF EXISTS events_by_ref_hash;
CREATE INDEX events_by_ref_hash ON events(ref_hash, account);
