-- The deferred items of a chunk in one state, in key order after a key, with the time until each is due by
-- this database's clock.
--
-- Lock: none. Index: the primary key. The states of one chunk are filtered.
SELECT coalesce(long_key, item_key), state, attempts, conflicts, error, context::text, record::text,
    greatest(0, extract(epoch FROM due_at - clock_timestamp()) * 1000)::bigint
FROM windlass_deferred
WHERE job_id = $1 AND chunk = $2 AND state = $3 AND item_key > $4
ORDER BY item_key
LIMIT $5
