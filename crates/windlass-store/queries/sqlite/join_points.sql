-- The join_points that wait for parents, the newest first. Lock: none. Index: none, they are few.
SELECT rule, agreed, arrived, updated_at FROM windlass_join_points ORDER BY updated_at DESC, key LIMIT ?1
