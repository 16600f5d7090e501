-- The waiting rows of the outbox, oldest first. Lock: none. Index: none, since the table is normally short.
SELECT id, job_type, created_at, attempts, error, next_at
FROM windlass_outbox
ORDER BY created_at, id
LIMIT ?1
