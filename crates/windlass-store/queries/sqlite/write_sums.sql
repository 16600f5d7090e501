-- Writes the sums of a job that has come to rest, so that nobody has to add them up again.
-- Lock: the writer's. Index: the chunks' primary key.
UPDATE windlass_jobs
SET (processed, skipped, dead, conflicts, completed, failed, cancelled) = (
    SELECT
        coalesce(sum(processed), 0),
        coalesce(sum(skipped), 0),
        coalesce(sum(dead), 0),
        coalesce(sum(conflicts), 0),
        count(*) FILTER (WHERE status = 'COMPLETED'),
        count(*) FILTER (WHERE status = 'FAILED'),
        count(*) FILTER (WHERE status = 'CANCELLED')
    FROM windlass_chunks
    WHERE job_id = ?1
)
WHERE id = ?1
