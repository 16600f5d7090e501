-- The second half of list_jobs.sql and show_job.sql. Adds the sums over the chunks of jobs that
-- have not ended, in one GROUP BY, and what the job waits for: a control of its type, other jobs,
-- or the retry of planning or a merge.
-- `waits_for` says in a few words what it waits for.
-- Lock: none.
-- Index: the primary key of the chunks, windlass_segments_pending.
sums AS (
    SELECT
        c.job_id,
        count(*) FILTER (WHERE c.status = 'PENDING') AS pending,
        count(*) FILTER (WHERE c.status = 'PROCESSING') AS processing,
        count(*) FILTER (WHERE c.status = 'COMPLETED') AS completed,
        count(*) FILTER (WHERE c.status = 'FAILED') AS failed,
        count(*) FILTER (WHERE c.status = 'CANCELLED') AS cancelled,
        sum(c.processed) AS processed,
        sum(c.skipped) AS skipped,
        sum(c.dead) AS dead,
        sum(c.conflicts) AS conflicts
    FROM windlass_chunks c
    WHERE c.job_id IN (SELECT p.id FROM page p WHERE NOT p.has_sums)
    GROUP BY c.job_id
)
SELECT
    p.id, p.job_type, p.status, p.priority, p.submitter, p.open_segments, p.merge,
    -- Without inline records, which may be megabytes for every job of a page.
    CASE WHEN instr(p.request, '"items":') > 0 THEN json_remove(p.request, '$.items') ELSE p.request END AS request,
    p.waited_ms + coalesce(CASE
        WHEN p.status = 'PAUSED' AND p.started_at IS NOT NULL THEN
            CAST(unixepoch('subsec') * 1000 AS INTEGER) - max(p.paused_at, p.started_at)
        WHEN p.status IN ('QUEUED', 'PROCESSING') AND p.started_at IS NOT NULL THEN (
            SELECT sum(min(o.ended_at, CAST(unixepoch('subsec') * 1000 AS INTEGER)) - max(o.began_at, p.started_at, coalesce(p.accounted_at, 0)))
            FROM windlass_outages o
            WHERE o.subject IN (p.job_type, 'connection:' || p.connection)
                AND o.ended_at > max(p.started_at, coalesce(p.accounted_at, 0))
        )
    END, 0) AS waited_ms,
    p.chunks_total, p.items_total, p.created_at, p.started_at, p.finished_at,
    coalesce(
        (
            SELECT CASE WHEN h.stopped THEN 'stopped; `windlass start` starts it again' ELSE h.reason END
            FROM windlass_controls h
            WHERE h.subject IN ('*', p.job_type, 'connection:' || p.connection)
                AND (
                    p.status IN ('QUEUED', 'PROCESSING')
                    -- Its chunks must still be fenced in that database.
                    OR p.status = 'CANCELLED' AND p.finished_at IS NULL AND h.subject LIKE 'connection:%'
                )
                AND (h.stopped OR h.suspended_until > CAST(unixepoch('subsec') * 1000 AS INTEGER))
                -- A job that waits for other jobs does not wait for a database yet.
                AND (p.waits = 0 OR h.subject NOT LIKE 'connection:%')
            ORDER BY h.stopped DESC, h.subject LIKE 'connection:%'
            LIMIT 1
        ),
        (
            SELECT 'waits for ' || p.waits || CASE p.waits WHEN 1 THEN ' job: ' ELSE ' jobs: ' END
                || group_concat(w.parent || ' ' || w.status, ', ')
            FROM (
                SELECT l.parent, j.status, j.created_at
                FROM windlass_links l JOIN windlass_jobs j ON j.id = l.parent
                WHERE l.child = p.id AND l.waits AND p.waits > 0 AND p.status = 'QUEUED'
                ORDER BY j.created_at
                LIMIT 3
            ) w
        ),
        (
            SELECT g.error
            FROM windlass_segments g
            WHERE g.job_id = p.id AND g.error IS NOT NULL AND p.open_segments > 0
                AND (g.status = 'PENDING' AND p.status = 'PROCESSING'
                    OR g.status IN ('PENDING', 'PROCESSING') AND p.status = 'CANCELLED')
            ORDER BY g.number
            LIMIT 1
        ),
        p.error
    ) AS error,
    CASE WHEN p.status IN ('QUEUED', 'PROCESSING') THEN coalesce(
        (
            SELECT CASE
                WHEN h.stopped THEN 'stopped'
                WHEN h.subject NOT LIKE 'connection:%' THEN 'step unavailable'
                WHEN h.reason LIKE 'throttled%' THEN 'health'
                ELSE h.reason
            END
            FROM windlass_controls h
            WHERE h.subject IN ('*', p.job_type, 'connection:' || p.connection)
                AND (h.stopped OR h.suspended_until > CAST(unixepoch('subsec') * 1000 AS INTEGER))
                AND (p.waits = 0 OR h.subject NOT LIKE 'connection:%')
            ORDER BY h.stopped DESC, h.subject LIKE 'connection:%'
            LIMIT 1
        ),
        CASE WHEN p.waits > 0 THEN 'jobs' END,
        (
            SELECT 'rate'
            FROM windlass_controls r
            WHERE r.subject IN (p.job_type, p.id)
                AND coalesce(r.rate, r.default_rate) IS NOT NULL
                AND r.next_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)
                AND s.processing > 0
            LIMIT 1
        ),
        -- No worker that is alive works on it.
        CASE WHEN
            NOT EXISTS (
                SELECT 1
                FROM windlass_segments g
                WHERE g.job_id = p.id AND g.status = 'PROCESSING'
            )
            AND NOT EXISTS (
                SELECT 1
                FROM windlass_chunks c JOIN windlass_workers w ON w.name = c.worker
                WHERE c.job_id = p.id AND c.status = 'PROCESSING' AND w.seen_at >= CAST(unixepoch('subsec') * 1000 AS INTEGER) - 2500
            )
        THEN coalesce(
            (
                SELECT 'slots'
                FROM windlass_segments g
                WHERE g.job_id = p.id AND g.status = 'PENDING' AND g.available_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER)
                LIMIT 1
            ),
            (
                SELECT 'slots'
                FROM windlass_chunks c
                WHERE c.job_id = p.id AND c.status = 'PENDING' AND c.available_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER)
                LIMIT 1
            ),
            (
                SELECT 'leases of worker ' || group_concat(DISTINCT c.worker) || ' until ' || strftime('%Y-%m-%dT%H:%M:%SZ', max(c.lease_until) / 1000, 'unixepoch')
                FROM windlass_chunks c
                WHERE c.job_id = p.id AND c.status = 'PROCESSING'
            ),
            CASE WHEN p.open_segments + p.open_chunks > 0 THEN 'retry' END
        ) END
    ) END AS waits_for,
    coalesce(s.processed, p.processed) AS processed,
    coalesce(s.skipped, p.skipped) AS skipped,
    coalesce(s.dead, p.dead) AS dead,
    coalesce(s.conflicts, p.conflicts) AS conflicts,
    coalesce(s.pending, 0) AS pending,
    coalesce(s.processing, 0) AS processing,
    coalesce(s.completed, p.completed) AS completed,
    coalesce(s.failed, p.failed) AS failed,
    coalesce(s.cancelled, p.cancelled) AS cancelled
FROM page p
    LEFT JOIN sums s ON s.job_id = p.id
ORDER BY p.created_at DESC, p.id DESC
