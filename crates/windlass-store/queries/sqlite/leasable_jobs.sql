-- Lists the jobs whose segments or chunks (?4) can be leased, by priority, then by age. Leaves out
-- stopped jobs and, for chunks, suspended job types and the job types and jobs in ?6.
-- Lock: the write transaction.
-- Index: windlass_jobs_leasable.
SELECT id, priority
FROM windlass_jobs
WHERE status IN ('QUEUED', 'PROCESSING')
    AND waits = 0
    AND CASE ?4 WHEN 'segments' THEN open_segments ELSE open_chunks END > 0
    AND connection IN (SELECT value FROM json_each(?1))
    AND (handler IS NULL OR handler IN (SELECT value FROM json_each(?2)))
    AND (?3 IS NULL OR id = ?3)
    AND (?5 IS NULL OR priority > ?5)
    AND (?4 <> 'chunks' OR ?6 = '[]' OR NOT EXISTS (
        SELECT 1 FROM json_each(?6) WHERE value IN (windlass_jobs.job_type, windlass_jobs.id)
    ))
    AND NOT EXISTS (
        SELECT 1
        FROM windlass_controls h
        WHERE h.subject IN ('*', windlass_jobs.job_type)
            AND (h.stopped OR ?4 = 'chunks' AND h.suspended_until > CAST(unixepoch('subsec') * 1000 AS INTEGER))
    )
ORDER BY priority DESC,
    -- Jobs of equal priority take turns at planning; see postgres/lease_segments.sql.
    CASE ?4 WHEN 'segments' THEN (
        SELECT max(t.available_at)
        FROM windlass_segments t INDEXED BY windlass_segments_pending
        WHERE t.job_id = windlass_jobs.id
            AND t.status = 'PENDING'
            AND t.available_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER)
    ) END,
    created_at,
    id
