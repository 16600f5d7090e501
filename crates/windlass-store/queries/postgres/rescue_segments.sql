-- Returns segments whose lease has expired to PENDING.
-- Lock: the segments that are not locked.
-- Index: windlass_segments_processing.
WITH expired AS MATERIALIZED (
    SELECT job_id, number
    FROM windlass_segments
    WHERE status = 'PROCESSING' AND lease_until < clock_timestamp()
    ORDER BY job_id, number
    FOR UPDATE SKIP LOCKED
)
UPDATE windlass_segments s
SET status = 'PENDING',
    losses = s.losses + 1,
    available_at = clock_timestamp(),
    lease_until = NULL
FROM expired e
WHERE s.job_id = e.job_id AND s.number = e.number
