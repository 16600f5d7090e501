-- Writes a transition of a job; ?5 is `now`, `clear` or `keep`. A cancelled job keeps its error
-- when it ends. Its output is then to be removed, except for a redrive: what its items emitted
-- belongs to the original job, and their letters are reprocessed. Returns whether other jobs follow
-- this one. Time in which a started job is paused, or failed before a retry, or in which its step or its
-- database was unavailable, is added up.
-- Lock: the write transaction.
-- Index: the primary keys of the jobs and of the outages.
UPDATE windlass_jobs
SET status = ?2,
    error = CASE
        WHEN status IN ('CANCELLED', 'FAILED') AND ?2 = 'CANCELLED' THEN coalesce(?3, error)
        ELSE ?3
    END,
    waited_ms = waited_ms + coalesce(CASE
        WHEN status = 'PAUSED' AND ?2 <> 'PAUSED' AND started_at IS NOT NULL
            THEN
                CAST(unixepoch('subsec') * 1000 AS INTEGER) - max(paused_at, started_at)
        WHEN ?5 = 'clear' THEN CAST(unixepoch('subsec') * 1000 AS INTEGER) - finished_at
        WHEN status IN ('QUEUED', 'PROCESSING') AND started_at IS NOT NULL THEN (
            SELECT sum(min(o.ended_at, CAST(unixepoch('subsec') * 1000 AS INTEGER)) - max(o.began_at, windlass_jobs.started_at, coalesce(windlass_jobs.accounted_at, 0)))
            FROM windlass_outages o
            WHERE o.subject IN (windlass_jobs.job_type, 'connection:' || windlass_jobs.connection)
                AND o.ended_at > max(windlass_jobs.started_at, coalesce(windlass_jobs.accounted_at, 0))
        )
    END, 0),
    accounted_at = CAST(unixepoch('subsec') * 1000 AS INTEGER),
    paused_at = CASE
        WHEN ?2 = 'PAUSED' THEN coalesce(paused_at, CAST(unixepoch('subsec') * 1000 AS INTEGER))
    END,
    budget_multiplier = budget_multiplier + ?4,
    discard = discard
        OR ?2 = 'CANCELLED' AND ?5 = 'now' AND NOT redrive
            AND (chunks_total > 0 OR coalesce(merge, '') = 'begun'),
    finished_at = CASE ?5
        WHEN 'now' THEN CAST(unixepoch('subsec') * 1000 AS INTEGER)
        WHEN 'clear' THEN NULL
        ELSE finished_at
    END
WHERE id = ?1
RETURNING rules IS NOT NULL
    OR EXISTS (SELECT 1 FROM windlass_links l WHERE l.parent = ?1 AND l.waits) AS followed
