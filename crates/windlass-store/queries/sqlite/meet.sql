-- Comes to a join_point and sees who is here. Lock: the writer's. Index: the primary key.
INSERT INTO windlass_join_points (key, rule, agreed, updated_at)
VALUES (?1, ?2, ?3, CAST(unixepoch('subsec') * 1000 AS INTEGER))
ON CONFLICT (key) DO UPDATE SET updated_at = excluded.updated_at
RETURNING arrived
