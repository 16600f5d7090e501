-- Changes the planner's settings until the transaction ends, for a statement that walks indexes in order. Changes only
-- those that the server has: CockroachDB refuses to set others.
-- Lock: none.
-- Index: none.
SELECT set_config(name, 'off', true)
FROM pg_settings
WHERE name IN ('jit', 'enable_seqscan', 'enable_bitmapscan')
