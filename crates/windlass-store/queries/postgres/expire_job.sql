-- Closes a job that ended longer ago than $2 milliseconds, has no letter that somebody must still
-- decide about and nobody who waits for it, so that nobody retries it. Not a failed redrive
-- with chunks that are not fenced: by their ledger its letters are settled. Lock: the job, held already.
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
