-- Closes a job that ended more than $2 milliseconds ago, so that it cannot be retried. Not a job
-- with a `new` dead letter, with a job that waits for it, or a failed redrive with chunks that are
-- not fenced: their ledger decides which letters are settled.
-- Lock: the job (already locked).
-- Index: the primary key; windlass_dead_letters_item; windlass_links_parent.
UPDATE windlass_jobs
SET closed = true
WHERE id = $1
    AND status IN ('COMPLETED', 'FAILED', 'CANCELLED')
    AND NOT (redrive AND status = 'FAILED' AND open_chunks > 0)
    AND finished_at <= clock_timestamp() - $2 * interval '1 millisecond'
    AND NOT EXISTS (
        SELECT FROM windlass_dead_letters l WHERE l.job_id = $1 AND l.status = 'new'
    )
    AND NOT EXISTS (
        SELECT
        FROM windlass_links l JOIN windlass_jobs c ON c.id = l.child
        WHERE l.parent = $1 AND l.waits AND c.finished_at IS NULL
    )
