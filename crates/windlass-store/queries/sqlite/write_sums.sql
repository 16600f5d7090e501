-- Writes the sums of an ended job, so that listings need not add up its chunks.
-- Lock: the write transaction.
-- Index: the primary key of the chunks.
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
