-- Raises the generation of a connection by one, above $2 at least. Lock: its row. Index: the primary key.
INSERT INTO windlass_generations (connection, generation) VALUES ($1, $2::bigint + 1)
ON CONFLICT (connection) DO UPDATE
SET generation = greatest(windlass_generations.generation, $2::bigint) + 1
RETURNING generation
