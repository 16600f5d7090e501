-- The rows that the items of a job emitted, in order after the given one. The comparison is written
-- out: MySQL finds no range of the index in one of several columns at once.
--
-- Lock: none. Index: the primary key.
SELECT chunk, item_key, place, fields
FROM windlass_emitted
WHERE job_id = ? AND chunk >= ? AND (
    chunk > ? OR (chunk = ? AND item_key >= ? AND (item_key > ? OR (item_key = ? AND place > ?)))
)
ORDER BY chunk, item_key, place
LIMIT ?
