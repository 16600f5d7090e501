-- Leases waiting segments by priority of the job, then in turns, each at a new epoch, and starts
-- their jobs. Jobs of equal priority take turns: first the job whose segments were handed back
-- longest ago or, for a new job, which was submitted longest ago. So a job whose planning takes
-- hours does not delay other jobs.
-- Lock: the leased segments; a job row only if it is free (SKIP LOCKED), so that locking it after
-- a segment cannot deadlock; the next transaction that changes the job starts it instead.
-- Index: windlass_jobs_leasable; windlass_segments_pending, once per job until enough segments are
-- found.
WITH picked AS MATERIALIZED (
    SELECT s.job_id, s.number, j.priority, j.created_at
    FROM (
        SELECT id, priority, created_at
        FROM windlass_jobs
        WHERE status IN ('QUEUED', 'PROCESSING')
            AND waits = 0
            AND open_segments > 0
            AND connection = ANY ($1)
            AND (handler IS NULL OR handler = ANY ($2))
            AND ($3::uuid IS NULL OR id = $3)
            AND NOT job_type = ANY (ARRAY(SELECT subject FROM windlass_controls WHERE stopped))
            -- Without a column of the jobs, so that no job is read while everything is stopped.
            AND NOT EXISTS (SELECT FROM windlass_controls WHERE subject = '*' AND stopped)
        ORDER BY priority DESC,
            (
                SELECT max(t.available_at)
                FROM windlass_segments t
                WHERE t.job_id = windlass_jobs.id
                    AND t.status = 'PENDING'
                    AND t.available_at <= clock_timestamp()
            ),
            created_at,
            id
    ) j
    CROSS JOIN LATERAL (
        SELECT job_id, number
        FROM windlass_segments
        WHERE job_id = j.id AND status = 'PENDING' AND available_at <= clock_timestamp()
        ORDER BY number
        LIMIT $4
        FOR UPDATE SKIP LOCKED
    ) s
    LIMIT $4
),
leased AS (
    UPDATE windlass_segments s
    SET status = 'PROCESSING',
        epoch = s.epoch + 1,
        nonce = hashtextextended(gen_random_uuid()::text, 0),
        worker = $5,
        lease_until = clock_timestamp() + $6 * interval '1 millisecond'
    FROM picked p
    WHERE s.job_id = p.job_id AND s.number = p.number
    RETURNING s.job_id, s.number, s.epoch, s.nonce, s.state, s.key_range, s.attempts, p.priority, p.created_at
),
-- Found by their ids in arrays: joins of the jobs with themselves would be planned by statistics, which are out of date
-- after many submits, and could compare every queued job with every other. IS TRUE keeps PostgreSQL from reading all
-- queued jobs by the index of the status instead.
begun AS (
    UPDATE windlass_jobs
    SET status = 'PROCESSING', started_at = coalesce(started_at, clock_timestamp())
    WHERE (status = 'QUEUED') IS TRUE
        AND id = ANY (ARRAY(
            SELECT id
            FROM windlass_jobs
            WHERE (status = 'QUEUED') IS TRUE AND id = ANY (ARRAY(SELECT job_id FROM picked))
            FOR NO KEY UPDATE SKIP LOCKED
        ))
)
SELECT job_id, number, epoch, nonce, state, key_range, attempts
FROM leased
ORDER BY priority DESC, created_at, job_id, number
