-- Raises the generation of a connection to one more than the larger of its value and ?2.
-- Lock: the write transaction.
-- Index: the primary key.
INSERT INTO windlass_generations (connection, generation) VALUES (?1, ?2 + 1)
ON CONFLICT (connection) DO UPDATE
SET generation = max(windlass_generations.generation, ?2) + 1
RETURNING generation
