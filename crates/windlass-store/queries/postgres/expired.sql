-- Lists jobs of a type that ended more than $2 milliseconds ago and have neither a `new` dead
-- letter nor a job that waits for them.
-- Lock: none.
-- Index: windlass_jobs_ended; windlass_dead_letters_item; windlass_links_parent.
SELECT j.id
FROM windlass_jobs j
WHERE j.job_type = $1
    AND j.finished_at <= clock_timestamp() - $2 * interval '1 millisecond'
    AND j.status IN ('COMPLETED', 'FAILED', 'CANCELLED')
    AND j.connection = ANY ($4)
    AND NOT EXISTS (
        SELECT FROM windlass_dead_letters l WHERE l.job_id = j.id AND l.status = 'new'
    )
    AND NOT EXISTS (
        SELECT
        FROM windlass_links l JOIN windlass_jobs c ON c.id = l.child
        WHERE l.parent = j.id AND l.waits AND c.finished_at IS NULL
    )
ORDER BY j.finished_at
LIMIT $3
