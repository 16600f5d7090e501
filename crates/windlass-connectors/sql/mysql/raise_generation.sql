-- Records the generation of a store. A higher one stays.
-- Lock: the row. Index: the primary key.
INSERT INTO windlass_stores (store_id, connection, generation) VALUES (?, ?, ?)
ON DUPLICATE KEY UPDATE generation = GREATEST(generation, VALUES(generation))
