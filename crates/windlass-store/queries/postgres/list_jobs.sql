-- Lists jobs, newest first; job_sums.sql is the second half. Jobs that have ended carry their sums.
-- The chunks of the others are added up.
-- Lock: none.
-- Index: windlass_jobs_newest, _submitter, _type or _status, depending on the filter; the primary
-- key of the chunks.
WITH page AS MATERIALIZED (
    SELECT
        id, job_type, status, priority, submitter, open_segments, open_chunks, merge, chunks_total,
        items_total, waited_ms, paused_at, accounted_at,
        created_at, started_at, finished_at, connection, waits, error, processed, skipped, dead,
        conflicts, completed, failed, cancelled,
        -- The whole request may be megabytes.
        coalesce(summary, request) AS request,
        status IN ('COMPLETED', 'FAILED', 'CANCELLED') AND open_segments + open_chunks = 0 AS has_sums
    FROM windlass_jobs
    WHERE ($1::text IS NULL OR job_type = $1)
        -- A job that is being cancelled is reported as PROCESSING.
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
