-- Leases waiting chunks by priority of the job, each at a new epoch and nonce, and starts their jobs.
-- With $10 it leases chunks of jobs of one priority, the highest one that has waiting chunks. The job
-- with the fewest chunks in progress comes first, and each gets as many as bring all to the same
-- number. Without $10 the oldest jobs come first; this leases what the fair shares left over. Job
-- types and jobs in $9 are left out. Of a limited job type or job it leases no more than there are
-- free slots; lock_limits.sql runs before it. Chunks that were leased before come first. The others
-- begin at the number from which a job may have unleased chunks ($7, $8; see lease_hint.rs). The row
-- of each job is read once, since it has many dead versions while a long transaction is open.
-- The lease lasts at most $11 milliseconds at first, since the chunk waits for a slot.
-- Lock: the leased chunks; a job row only if it is free (SKIP LOCKED), so that locking it after a
-- chunk cannot deadlock; the next transaction that changes the job starts it instead.
-- Index: windlass_jobs_leasable; windlass_chunks_again and _fresh, once per job until enough chunks
-- are found; windlass_chunks_processing, once per job that shares.
WITH room AS MATERIALIZED (
    SELECT l.subject, coalesce(l.concurrency, l.default_concurrency) - (
        SELECT count(*)
        FROM windlass_jobs a JOIN windlass_chunks c ON c.job_id = a.id AND c.status = 'PROCESSING'
        WHERE l.subject IN (a.job_type, a.id::text) AND a.status IN ('QUEUED', 'PROCESSING') AND a.waits = 0
    ) AS room
    FROM windlass_controls l
    WHERE coalesce(l.concurrency, l.default_concurrency) IS NOT NULL
),
-- Read in the order of the index, and only as far as needed. So it has no join that would need another order, and no
-- volatile function, which would make PostgreSQL read all of it first.
waiting AS NOT MATERIALIZED (
    SELECT *, least(of_type, of_job) AS room
    FROM (
        SELECT
            w.id, w.job_type, w.priority, w.created_at, w.lease_ms, w.timeout_ms,
            (SELECT room FROM room WHERE subject = w.job_type) AS of_type,
            (SELECT room FROM room WHERE subject = w.id::text) AS of_job,
            coalesce(
                (SELECT f.number FROM unnest($7::uuid[], $8::bigint[]) AS f (id, number) WHERE f.id = w.id), 0
            ) AS first
        FROM windlass_jobs w
        WHERE w.status IN ('QUEUED', 'PROCESSING')
            AND w.waits = 0
            AND w.open_chunks > 0
            AND w.connection = ANY ($1)
            AND (w.handler IS NULL OR w.handler = ANY ($2))
            AND ($3::uuid IS NULL OR w.id = $3)
            AND ($6::bigint IS NULL OR w.priority > $6)
            AND NOT (w.job_type = ANY ($9) OR w.id::text = ANY ($9))
            AND NOT w.job_type = ANY (
                ARRAY(SELECT subject FROM windlass_controls WHERE stopped OR suspended_until > statement_timestamp())
            )
            -- Without a column of the jobs, so that no job is read while everything is stopped.
            AND NOT EXISTS (
                SELECT
                FROM windlass_controls
                WHERE subject = '*' AND (stopped OR suspended_until > statement_timestamp())
            )
    ) open
    WHERE coalesce(least(of_type, of_job), 1) > 0
),
-- The oldest jobs of the highest priority with a waiting chunk.
peers AS MATERIALIZED (
    SELECT *, count(*) OVER () AS peers
    FROM (
        SELECT *, max(priority) OVER () AS highest, count(*) OVER () AS found
        FROM (
            SELECT *
            FROM waiting w
            WHERE $10
                AND (
                    EXISTS (
                        SELECT
                        FROM windlass_chunks
                        WHERE job_id = w.id
                            AND status = 'PENDING'
                            AND epoch = 0
                            AND number >= w.first
                            AND available_at <= statement_timestamp()
                    )
                    OR EXISTS (
                        SELECT
                        FROM windlass_chunks
                        WHERE job_id = w.id
                            AND status = 'PENDING'
                            AND epoch > 0
                            AND available_at <= statement_timestamp()
                    )
                )
            ORDER BY priority DESC, created_at, id
            LIMIT 64
        ) oldest
    ) ranked
    WHERE priority = highest
),
-- If k jobs share the slots, each has `level` chunks in progress afterwards. The lowest level is the
-- one that all jobs below it can reach.
shares AS MATERIALIZED (
    SELECT *, ceil(min(level) OVER () - busy)::bigint AS share
    FROM (
        SELECT *, ($4 + sum(busy) OVER fewest)::float8 / row_number() OVER fewest AS level
        FROM (
            SELECT *,
                CASE WHEN peers > 1 THEN (
                    SELECT count(*)
                    FROM windlass_chunks
                    WHERE job_id = p.id AND status = 'PROCESSING'
                ) ELSE 0 END AS busy
            FROM peers p
        ) counted
        WINDOW fewest AS (ORDER BY busy, created_at, id)
    ) levelled
),
available AS MATERIALIZED (
    SELECT
        c.job_id, c.number, c.lost, j.job_type, j.of_type, j.priority, j.created_at, j.lease_ms,
        j.timeout_ms
    FROM (
        (
            SELECT id, job_type, priority, created_at, lease_ms, timeout_ms, of_type, room, first, share
            FROM shares
            WHERE share > 0
            ORDER BY busy, created_at, id
        )
        UNION ALL
        (
            SELECT id, job_type, priority, created_at, lease_ms, timeout_ms, of_type, room, first, NULL::bigint AS share
            FROM waiting
            WHERE NOT $10
            ORDER BY priority DESC, created_at, id
        )
    ) j
    CROSS JOIN LATERAL (
        SELECT *
        FROM (
            SELECT job_id, number, lost
            FROM windlass_chunks
            WHERE job_id = j.id
                AND status = 'PENDING'
                AND epoch > 0
                AND available_at <= statement_timestamp()
            ORDER BY number
            FOR UPDATE SKIP LOCKED
        ) again
        UNION ALL
        SELECT *
        FROM (
            SELECT job_id, number, lost
            FROM windlass_chunks
            WHERE job_id = j.id
                AND status = 'PENDING'
                AND epoch = 0
                AND number >= j.first
                AND available_at <= statement_timestamp()
            ORDER BY number
            FOR UPDATE SKIP LOCKED
        ) fresh
        LIMIT least($4, j.room, j.share)
    ) c
    LIMIT $4
),
picked AS MATERIALIZED (
    SELECT *
    FROM (
        SELECT *, row_number() OVER (PARTITION BY job_type ORDER BY priority DESC, created_at, number) AS place
        FROM available
    ) placed
    WHERE of_type IS NULL OR place <= of_type
),
leased AS (
    UPDATE windlass_chunks c
    SET status = 'PROCESSING',
        epoch = c.epoch + 1,
        nonce = hashtextextended(gen_random_uuid()::text, 0),
        worker = $5,
        lost = false,
        ending = false,
        started_at = coalesce(c.started_at, clock_timestamp()),
        deadline = clock_timestamp() + p.timeout_ms * interval '1 millisecond',
        lease_until =
            clock_timestamp() + least(p.lease_ms, p.timeout_ms, $11) * interval '1 millisecond'
    FROM picked p
    WHERE c.job_id = p.job_id AND c.number = p.number
    RETURNING c.job_id, c.number, c.epoch, c.nonce, c.key_set, c.items, c.attempts, p.lost, c.error,
        p.priority, p.created_at
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
SELECT
    job_id, number, epoch, nonce, key_set, items, attempts, lost, error,
    -- Whether the fair shares may have left chunks over: of other priorities, of jobs that were not read, or of a job that
    -- got its whole share.
    (
        SELECT coalesce(bool_or(s.found > s.peers OR s.found = 64 OR s.share <= (
            SELECT count(*) FROM picked WHERE job_id = s.id
        )), false)
        FROM shares s
    ) AS may_have_more
FROM leased
ORDER BY priority DESC, created_at, job_id, number
