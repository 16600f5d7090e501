-- The deferred items of a chunk in one state, in key order after a key, with the time until each is due by
-- this database's clock.
--
-- Lock: none. Index: the primary key. The states of one chunk are filtered.
SELECT COALESCE(long_key, item_key), attempts, conflicts, error, context, record,
    GREATEST(0, due_at - CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED))
FROM windlass_deferred
WHERE job_id = ? AND chunk = ? AND state = ? AND item_key > ?
ORDER BY item_key
LIMIT ?
