-- Stores which parents have arrived at a join point.
-- Lock: the join point (already locked).
-- Index: the primary key.
UPDATE windlass_join_points SET arrived = $2 WHERE key = $1
