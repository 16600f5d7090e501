-- Leases the merges of cancelled jobs at a new epoch, so that their loads can be fenced. All other
-- segments of these jobs have ended.
-- Lock: the leased segments.
-- Index: windlass_jobs_cancelled; windlass_segments_pending.
WITH picked AS MATERIALIZED (
    SELECT s.job_id, s.number
    FROM windlass_jobs j JOIN windlass_segments s ON s.job_id = j.id
    WHERE j.status = 'CANCELLED'
        AND j.finished_at IS NULL
        AND j.connection = ANY ($1)
        AND ($2::uuid IS NULL OR j.id = $2)
        AND s.status = 'PENDING'
        AND s.available_at <= clock_timestamp()
    ORDER BY s.job_id, s.number
    LIMIT $3
    FOR UPDATE OF s SKIP LOCKED
)
UPDATE windlass_segments s
SET status = 'PROCESSING',
    epoch = s.epoch + 1,
    nonce = hashtextextended(gen_random_uuid()::text, 0),
    worker = $4,
    lease_until = clock_timestamp() + $5 * interval '1 millisecond'
FROM picked p
WHERE s.job_id = p.job_id AND s.number = p.number
RETURNING s.job_id, s.number, s.epoch, s.nonce, s.state, s.key_range, s.attempts
