-- Deletes the rows that a job emitted, at most $2 rows. Lock: the rows.
-- Index: the primary key's first column.
DELETE FROM windlass_emitted
WHERE ctid = ANY (ARRAY (SELECT ctid FROM windlass_emitted WHERE job_id = $1 LIMIT $2))
