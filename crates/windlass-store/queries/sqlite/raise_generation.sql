-- Raises the generation of a connection by one, above ?2 at least. Lock: the writer's. Index: the primary key.
INSERT INTO windlass_generations (connection, generation) VALUES (?1, ?2 + 1)
ON CONFLICT (connection) DO UPDATE
SET generation = max(windlass_generations.generation, ?2) + 1
RETURNING generation
