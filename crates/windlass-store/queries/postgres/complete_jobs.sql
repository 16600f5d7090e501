-- Completes jobs of one chunk together with that chunk, if it is still leased at this epoch. Leaves out a job that
-- something else depends on: a merge, a redriven letter, another job, or an outage that its time must not include. The
-- jobs are locked by an earlier statement, so that this one sees the links of jobs that were submitted meanwhile.
-- Returns the jobs that it completed. Jobs and chunks are found by their keys, as in complete_chunks.sql.
-- Lock: the jobs (already locked), then the chunks in order of their keys.
-- Index: the primary keys; windlass_links_parent.
WITH held AS MATERIALIZED (
    SELECT d.*
    FROM (
            SELECT *
            FROM unnest(
                $1::uuid[], $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::bigint[],
                $7::bigint[], $8::bigint[], $9::bigint[]
            ) AS d (job_id, epoch, nonce, cursor, read, processed, skipped, conflicts, marked)
            ORDER BY job_id
        ) d
        CROSS JOIN LATERAL (
            SELECT *
            FROM windlass_jobs
            WHERE id = d.job_id
            FOR NO KEY UPDATE
        ) j
        CROSS JOIN LATERAL (
            SELECT epoch, nonce, status
            FROM windlass_chunks
            WHERE job_id = d.job_id AND number = 0
            FOR UPDATE
        ) c
    WHERE c.epoch = d.epoch
        AND c.nonce = d.nonce
        AND c.status || '' = 'PROCESSING'
        AND j.status IN ('QUEUED', 'PROCESSING')
        AND j.open_segments = 0
        AND j.open_chunks = 1
        AND j.chunks_total = 1
        AND j.merge IS NULL
        AND j.rules IS NULL
        AND NOT j.redrive
        AND NOT j.closed
        AND NOT EXISTS (SELECT FROM windlass_links l WHERE l.parent = j.id AND l.waits)
        AND NOT EXISTS (
            SELECT
            FROM windlass_outages o
            WHERE o.subject IN (j.job_type, 'connection:' || j.connection)
                AND o.ended_at > greatest(j.started_at, j.accounted_at)
        )
),
completed AS (
    UPDATE windlass_chunks c
    SET status = 'COMPLETED',
        cursor = d.cursor,
        read = d.read,
        processed = d.processed,
        skipped = d.skipped,
        dead = 0,
        conflicts = d.conflicts,
        marked = coalesce(d.marked, c.marked),
        lease_until = NULL,
        finished_at = clock_timestamp()
    FROM held d
    WHERE c.job_id = d.job_id AND c.number = 0
)
UPDATE windlass_jobs j
SET status = 'COMPLETED',
    error = NULL,
    open_chunks = 0,
    started_at = coalesce(j.started_at, clock_timestamp()),
    accounted_at = clock_timestamp(),
    paused_at = NULL,
    finished_at = clock_timestamp(),
    processed = d.processed,
    skipped = d.skipped,
    dead = 0,
    conflicts = d.conflicts,
    completed = 1,
    failed = 0,
    cancelled = 0
FROM held d
WHERE j.id = d.job_id
RETURNING j.id
