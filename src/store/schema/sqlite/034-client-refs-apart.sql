-- The server's.
SELECT 1;
