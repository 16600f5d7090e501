-- What waits in the outbox, oldest first. Lock: none. Index: none; it is short, or something is wrong.
SELECT id, job_type, created_at, attempts, error, next_at
FROM windlass_outbox
ORDER BY created_at, id
LIMIT $1
