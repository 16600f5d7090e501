-- Creates or locks a join point and reads which parents have arrived. Join points are locked after
-- all jobs and in order of their keys.
-- Lock: the write transaction.
-- Index: the primary key.
INSERT INTO windlass_join_points (key, rule, agreed, updated_at)
VALUES (?1, ?2, ?3, CAST(unixepoch('subsec') * 1000 AS INTEGER))
ON CONFLICT (key) DO UPDATE SET updated_at = excluded.updated_at
RETURNING arrived
