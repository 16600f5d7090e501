-- Claims waiting chunks by job priority, then age, each at a new epoch, and begins their jobs.
-- Lock: the chosen chunks; a job row only when nobody holds it (SKIP LOCKED), so that taking it
-- after a chunk cannot deadlock: whoever touches the job next begins it instead.
-- Index: windlass_jobs_claim; windlass_chunks_pending, once per job until there are enough.
WITH picked AS MATERIALIZED (
    SELECT c.job_id, c.number, c.lost
    FROM (
        SELECT id
        FROM windlass_jobs
        WHERE status IN ('QUEUED', 'PROCESSING')
            AND open_chunks > 0
            AND connection = ANY ($1)
            AND (handler IS NULL OR handler = ANY ($2))
            AND ($3::uuid IS NULL OR id = $3)
            AND NOT EXISTS (
                SELECT
                FROM windlass_controls h
                WHERE h.job_type = windlass_jobs.job_type AND h.held_until > clock_timestamp()
            )
        ORDER BY priority DESC, created_at, id
    ) j
    CROSS JOIN LATERAL (
        SELECT job_id, number, lost
        FROM windlass_chunks
        WHERE job_id = j.id AND status = 'PENDING' AND available_at <= clock_timestamp()
        ORDER BY number
        LIMIT $4
        FOR UPDATE SKIP LOCKED
    ) c
    LIMIT $4
),
claimed AS (
    UPDATE windlass_chunks c
    SET status = 'PROCESSING',
        epoch = c.epoch + 1,
        worker = $5,
        lost = false,
        ending = false,
        started_at = coalesce(c.started_at, clock_timestamp()),
        deadline = clock_timestamp() + j.timeout_ms * interval '1 millisecond',
        lease_until =
            clock_timestamp() + least(j.lease_ms, j.timeout_ms) * interval '1 millisecond'
    FROM picked p JOIN windlass_jobs j ON j.id = p.job_id
    WHERE c.job_id = p.job_id AND c.number = p.number
    RETURNING c.job_id, c.number, c.epoch, c.extent, c.items, c.attempts, p.lost, c.error
),
begun AS (
    UPDATE windlass_jobs
    SET status = 'PROCESSING', started_at = coalesce(started_at, clock_timestamp())
    WHERE status = 'QUEUED'
        AND id IN (
            SELECT id
            FROM windlass_jobs
            WHERE status = 'QUEUED' AND id IN (SELECT job_id FROM picked)
            FOR NO KEY UPDATE SKIP LOCKED
        )
)
SELECT c.*
FROM claimed c JOIN windlass_jobs j ON j.id = c.job_id
ORDER BY j.priority DESC, j.created_at, j.id, c.number
