-- The rows that the items of a job emitted, in order after a cursor. The comparison is written column by
-- column, since MySQL does not use an index for a row comparison.
--
-- Lock: none. Index: the primary key.
SELECT chunk, item_key, seq, fields
FROM windlass_emitted
WHERE job_id = ? AND chunk >= ? AND (
    chunk > ? OR (chunk = ? AND item_key >= ? AND (item_key > ? OR (item_key = ? AND seq > ?)))
)
ORDER BY chunk, item_key, seq
LIMIT ?
