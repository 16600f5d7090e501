-- Creates or locks a join point and reads which parents have arrived. Join points are locked after
-- all jobs and in order of their keys.
-- Lock: the join point; waits for a concurrent arrival.
-- Index: the primary key.
INSERT INTO windlass_join_points (key, rule, agreed)
VALUES ($1, $2, $3)
ON CONFLICT (key) DO UPDATE SET updated_at = clock_timestamp()
RETURNING arrived
