-- Locks jobs, the oldest first, as all transactions do that lock several.
-- It is sent together with BEGIN. `windlass.in_transaction` is set only if BEGIN succeeded.
-- Lock: the jobs.
-- Index: the primary key.
SELECT id
FROM windlass_jobs
WHERE id = ANY ($1) AND current_setting('windlass.in_transaction', true) = 'on'
ORDER BY created_at, id
FOR NO KEY UPDATE
