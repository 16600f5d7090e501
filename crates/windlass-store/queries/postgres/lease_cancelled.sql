-- Leases chunks of cancelled jobs that were ever leased, at a new epoch and even while they are
-- leased, except those that another process has leased to cancel and whose lease is valid.
-- Lock: the leased chunks.
-- Index: windlass_jobs_cancelled; the primary key of the chunks.
WITH picked AS MATERIALIZED (
    SELECT c.job_id, c.number, c.lost
    FROM (
        SELECT id
        FROM windlass_jobs
        WHERE status = 'CANCELLED'
            AND finished_at IS NULL
            AND connection = ANY ($1)
            AND ($2::uuid IS NULL OR id = $2)
        ORDER BY id
    ) j
    CROSS JOIN LATERAL (
        SELECT job_id, number, lost
        FROM windlass_chunks
        WHERE job_id = j.id
            AND (status = 'PENDING' OR status = 'PROCESSING')
            AND epoch > 0
            AND NOT (ending AND lease_until > clock_timestamp())
        ORDER BY number
        LIMIT $3
        FOR UPDATE SKIP LOCKED
    ) c
    LIMIT $3
)
UPDATE windlass_chunks c
SET status = 'PROCESSING',
    epoch = c.epoch + 1,
    nonce = hashtextextended(gen_random_uuid()::text, 0),
    worker = $4,
    lost = false,
    ending = true,
    deadline = clock_timestamp() + j.timeout_ms * interval '1 millisecond',
    lease_until = clock_timestamp() + $5 * interval '1 millisecond'
FROM picked p JOIN windlass_jobs j ON j.id = p.job_id
WHERE c.job_id = p.job_id AND c.number = p.number
RETURNING c.job_id, c.number, c.epoch, c.nonce, c.key_set, c.items, c.attempts, p.lost, c.error
