-- Jobs newest first; job_sums.sql is the rest. Jobs that have not come to rest are summed over
-- their chunks; those that have carry their sums. Lock: none.
-- Index: windlass_jobs_newest, or _submitter, _type or _status as is asked for; the chunks' primary key.
WITH page AS MATERIALIZED (
    SELECT
        id, job_type, status, priority, submitter, open_segments, merge, chunks_total, items_total,
        created_at, started_at, finished_at, connection, waits, error, processed, skipped, dead,
        conflicts, completed, failed, cancelled,
        -- The request itself may be megabytes.
        coalesce(summary, request) AS request,
        status IN ('COMPLETED', 'FAILED', 'CANCELLED') AND open_segments + open_chunks = 0 AS rests
    FROM windlass_jobs
    WHERE ($1::text IS NULL OR job_type = $1)
        -- One that is being cancelled is at work.
        AND ($2::text IS NULL
            OR status = $2 AND (status <> 'CANCELLED' OR finished_at IS NOT NULL)
            OR $2 = 'PROCESSING' AND status = 'CANCELLED' AND finished_at IS NULL)
        AND ($5::text IS NULL OR submitter = $5)
        AND ($6::uuid IS NULL OR id = $6)
        AND ($7::text[] IS NULL OR job_type = ANY ($7))
        AND ($3::uuid IS NULL
            OR (created_at, id) < (SELECT b.created_at, b.id FROM windlass_jobs b WHERE b.id = $3))
    ORDER BY created_at DESC, id DESC
    LIMIT $4
),
