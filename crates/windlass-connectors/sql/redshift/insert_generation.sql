-- Records the first generation of a store. The table is locked.
INSERT INTO windlass_stores (store_id, connection, generation) VALUES ({store}, {connection}, {generation})
