-- The embedded engine's.
SELECT 1;
