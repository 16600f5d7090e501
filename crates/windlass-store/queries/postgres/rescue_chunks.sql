-- Returns chunks whose lease has expired to PENDING, whatever the status of their job.
-- Lock: the chunks that are not locked.
-- Index: windlass_chunks_processing, one entry per chunk in progress.
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
