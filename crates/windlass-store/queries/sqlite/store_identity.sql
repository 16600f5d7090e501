-- The identity of this store. Lock: none. Index: none; there is one row.
SELECT id FROM windlass_store
