-- Raises the generation of a connection to one more than the larger of its value and $2.
-- Lock: the row.
-- Index: the primary key.
INSERT INTO windlass_generations (connection, generation) VALUES ($1, $2::bigint + 1)
ON CONFLICT (connection) DO UPDATE
SET generation = greatest(windlass_generations.generation, $2::bigint) + 1
RETURNING generation
