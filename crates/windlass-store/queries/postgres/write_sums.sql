-- Writes the sums of an ended job, so that listings need not add up its chunks.
-- Lock: the job (already locked).
-- Index: the primary key of the chunks.
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
