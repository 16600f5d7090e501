-- Writes the sums of a job that has come to rest, so that nobody has to add them up again.
-- Lock: the job, held already. Index: the chunks' primary key.
UPDATE windlass_jobs j
SET processed = s.processed,
    skipped = s.skipped,
    dead = s.dead,
    conflicts = s.conflicts,
    completed = s.completed,
    failed = s.failed,
    cancelled = s.cancelled
FROM (
    SELECT
        coalesce(sum(processed), 0) AS processed,
        coalesce(sum(skipped), 0) AS skipped,
        coalesce(sum(dead), 0) AS dead,
        coalesce(sum(conflicts), 0) AS conflicts,
        count(*) FILTER (WHERE status = 'COMPLETED') AS completed,
        count(*) FILTER (WHERE status = 'FAILED') AS failed,
        count(*) FILTER (WHERE status = 'CANCELLED') AS cancelled
    FROM windlass_chunks
    WHERE job_id = $1
) s
WHERE j.id = $1
