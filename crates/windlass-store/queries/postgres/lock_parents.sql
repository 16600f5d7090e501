-- The jobs that another is to come after, so that none of them ends while it is linked to them.
-- One that is being cancelled is at work: it has not ended.
-- Lock: these jobs, shared, from the oldest on: a child is always younger than its parents, so that
-- locks go from parents to children everywhere. Index: the primary key.
SELECT id, CASE WHEN status = 'CANCELLED' AND finished_at IS NULL THEN 'PROCESSING' ELSE status END AS status
FROM windlass_jobs
WHERE id = ANY ($1)
ORDER BY created_at, id
FOR SHARE
