-- The jobs that another is to come after. Lock: the writer's. Index: the primary key.
SELECT id, status
FROM windlass_jobs
WHERE id IN (SELECT value FROM json_each(?1))
ORDER BY created_at, id
