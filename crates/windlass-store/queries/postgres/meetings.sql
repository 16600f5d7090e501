-- The meetings that wait for parents, the newest first. Lock: none. Index: none, they are few.
SELECT rule, agreed, arrived, updated_at FROM windlass_meetings ORDER BY updated_at DESC, key LIMIT $1
