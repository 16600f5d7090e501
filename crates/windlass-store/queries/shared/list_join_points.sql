-- Lists the join points that wait for parents, newest first.
-- Lock: none.
-- Index: none; the table is small.
SELECT rule, agreed, arrived, updated_at FROM windlass_join_points ORDER BY updated_at DESC, key LIMIT $1
