-- The index of client_refs as sorted runs is the embedded store's alone: a server has an index of its own.
SELECT 1;
