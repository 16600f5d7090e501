-- The names of the user's tables in the first schema of the search path. Lock: none.
SELECT table_name FROM information_schema.tables
WHERE table_schema = current_schema() AND table_name NOT LIKE 'windlass\\_%'
ORDER BY table_name
