-- Comes to a join_point and sees who is here. Lock: the join_point, after all jobs; several in order of
-- their key. Whoever comes at the same time is waited for. Index: the primary key.
INSERT INTO windlass_join_points (key, rule, agreed)
VALUES ($1, $2, $3)
ON CONFLICT (key) DO UPDATE SET updated_at = clock_timestamp()
RETURNING arrived
