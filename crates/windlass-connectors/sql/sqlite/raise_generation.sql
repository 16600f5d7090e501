-- Records that a store began to work here at this generation; a higher one stays.
-- Lock: the file's one writer. Index: the primary key.
INSERT INTO windlass_stores (store_id, connection, generation) VALUES (?1, ?2, ?3)
ON CONFLICT (store_id, connection) DO UPDATE
SET generation = max(windlass_stores.generation, excluded.generation)
