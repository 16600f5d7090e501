-- Reads the identity of this store.
-- Lock: none.
-- Index: none; the table has one row.
SELECT id FROM windlass_store
