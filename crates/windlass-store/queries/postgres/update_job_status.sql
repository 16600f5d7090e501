-- Writes a transition of a job; $5 is `now`, `clear` or `keep`. A cancelled job keeps its error
-- when it ends. Its output is then to be removed, except for a redrive: what its items emitted
-- belongs to the original job, and their letters are reprocessed. Returns whether other jobs follow
-- this one. Time in which a started job is paused, or failed before a retry, or in which its step or its
-- database was unavailable, is added up.
-- Lock: the job (already locked).
-- Index: the primary keys of the jobs and of the outages.
UPDATE windlass_jobs
SET status = $2,
    error = CASE
        WHEN status IN ('CANCELLED', 'FAILED') AND $2 = 'CANCELLED' THEN coalesce($3, error)
        ELSE $3
    END,
    waited_ms = waited_ms + coalesce(CASE
        WHEN status = 'PAUSED' AND $2 <> 'PAUSED' AND started_at IS NOT NULL
            THEN
                (extract(epoch FROM clock_timestamp() - greatest(paused_at, started_at)) * 1000)::bigint
        WHEN $5 = 'clear' THEN (extract(epoch FROM clock_timestamp() - finished_at) * 1000)::bigint
        WHEN status IN ('QUEUED', 'PROCESSING') AND started_at IS NOT NULL THEN (
            SELECT (sum(extract(epoch FROM least(o.ended_at, clock_timestamp()) - greatest(o.began_at, windlass_jobs.started_at, windlass_jobs.accounted_at))) * 1000)::bigint
            FROM windlass_outages o
            WHERE o.subject IN (windlass_jobs.job_type, 'connection:' || windlass_jobs.connection)
                AND o.ended_at > greatest(windlass_jobs.started_at, windlass_jobs.accounted_at)
        )
    END, 0),
    accounted_at = clock_timestamp(),
    paused_at = CASE
        WHEN $2 = 'PAUSED' THEN coalesce(paused_at, clock_timestamp())
    END,
    budget_multiplier = budget_multiplier + $4,
    discard = discard
        OR $2 = 'CANCELLED' AND $5 = 'now' AND NOT redrive
            AND (chunks_total > 0 OR coalesce(merge, '') = 'begun'),
    finished_at = CASE $5::text
        WHEN 'now' THEN clock_timestamp()
        WHEN 'clear' THEN NULL
        ELSE finished_at
    END
WHERE id = $1
RETURNING rules IS NOT NULL
    OR EXISTS (SELECT 1 FROM windlass_links l WHERE l.parent = $1 AND l.waits) AS followed
