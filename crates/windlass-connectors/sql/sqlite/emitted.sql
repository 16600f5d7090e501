-- The rows that the items of a job emitted, in order after the given one.
--
-- Lock: none, on a snapshot. Index: the primary key.
SELECT chunk, item_key, place, fields
FROM windlass_emitted
WHERE job_id = ?1 AND (chunk, item_key, place) > (?2, ?3, ?4)
ORDER BY chunk, item_key, place
LIMIT ?5
