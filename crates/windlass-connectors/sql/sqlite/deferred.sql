-- The deferred items of a chunk in one state, in key order after a key, with the time until each is due.
--
-- Lock: none. Index: the primary key. The states of one chunk are filtered.
SELECT item_key, state, attempts, conflicts, error, context, record,
    max(0, due_at - CAST(unixepoch('subsec') * 1000 AS INTEGER))
FROM windlass_deferred
WHERE job_id = ?1 AND chunk = ?2 AND state = ?3 AND item_key > ?4
ORDER BY item_key
LIMIT ?5
