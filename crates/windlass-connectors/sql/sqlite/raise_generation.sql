-- Records the generation of a store. A higher one stays.
-- Lock: the write lock of the file. Index: the primary key.
INSERT INTO windlass_stores (store_id, connection, generation) VALUES (?1, ?2, ?3)
ON CONFLICT (store_id, connection) DO UPDATE
SET generation = max(windlass_stores.generation, excluded.generation)
