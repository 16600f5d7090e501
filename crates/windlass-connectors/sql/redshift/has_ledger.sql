-- The number of the ledger's tables that exist in the first schema of the search path. Lock: none.
SELECT count(*) FROM information_schema.tables
WHERE table_schema = current_schema() AND table_name IN ('windlass_ledger', 'windlass_stores')
