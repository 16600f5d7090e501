-- Records the generation of a store. A higher one stays.
-- Lock: the row. Index: the primary key.
INSERT INTO windlass_stores (store_id, connection, generation) VALUES ($1, $2, $3)
ON CONFLICT (store_id, connection) DO UPDATE
SET generation = greatest(windlass_stores.generation, excluded.generation)
