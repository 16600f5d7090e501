-- The rows that the items of a job emitted, in order after a cursor.
--
-- Lock: none. Index: the primary key.
SELECT chunk, item_key, seq, fields::text
FROM windlass_emitted
WHERE job_id = $1 AND (chunk, item_key, seq) > ($2, $3, $4)
ORDER BY chunk, item_key, seq
LIMIT $5
