-- Lists jobs of a type that ended more than ?2 milliseconds ago and have neither a `new` dead
-- letter nor a job that waits for them.
-- Lock: none.
-- Index: windlass_jobs_ended; windlass_dead_letters_item; windlass_links_parent.
SELECT j.id
FROM windlass_jobs j
WHERE j.job_type = ?1
    AND j.finished_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER) - ?2
    AND j.status IN ('COMPLETED', 'FAILED', 'CANCELLED')
    AND j.connection IN (SELECT value FROM json_each(?4))
    AND NOT EXISTS (
        SELECT 1 FROM windlass_dead_letters l WHERE l.job_id = j.id AND l.status = 'new'
    )
    AND NOT EXISTS (
        SELECT 1
        FROM windlass_links l JOIN windlass_jobs c ON c.id = l.child
        WHERE l.parent = j.id AND l.waits AND c.finished_at IS NULL
    )
ORDER BY j.finished_at
LIMIT ?3
