-- The jobs that another is to come after. One that is being cancelled is at work: it has not ended. Lock: the writer's. Index: the primary key.
SELECT id, CASE WHEN status = 'CANCELLED' AND finished_at IS NULL THEN 'PROCESSING' ELSE status END AS status
FROM windlass_jobs
WHERE id IN (SELECT value FROM json_each(?1))
ORDER BY created_at, id
