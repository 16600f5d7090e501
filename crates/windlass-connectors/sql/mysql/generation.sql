-- The highest generation that a store has recorded here. Lock: none. Index: the primary key.
SELECT generation FROM windlass_stores WHERE store_id = ? AND connection = ?
