-- Turns chunks whose lease ran out back into waiting ones, whatever their job's status.
-- Lock: those chunks that nobody else holds. Index: windlass_chunks_processing, as many entries as
-- chunks are at work.
WITH expired AS MATERIALIZED (
    SELECT job_id, number
    FROM windlass_chunks
    WHERE status = 'PROCESSING' AND lease_until < clock_timestamp()
    ORDER BY job_id, number
    FOR UPDATE SKIP LOCKED
)
UPDATE windlass_chunks c
SET status = 'PENDING',
    lost = true,
    losses = c.losses + 1,
    ending = false,
    available_at = clock_timestamp(),
    lease_until = NULL
FROM expired e
WHERE c.job_id = e.job_id AND c.number = e.number
