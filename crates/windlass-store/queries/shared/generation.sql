-- Reads the generation of a connection.
-- Lock: none.
-- Index: the primary key.
SELECT generation FROM windlass_generations WHERE connection = $1
