-- Expires the leases of a worker's segments. The next rescue returns them to PENDING.
-- Lock: the segments that are not locked.
-- Index: windlass_segments_processing.
WITH leased AS MATERIALIZED (
    SELECT job_id, number
    FROM windlass_segments
    WHERE status = 'PROCESSING' AND worker = $1
    ORDER BY job_id, number
    FOR UPDATE SKIP LOCKED
)
UPDATE windlass_segments c
SET lease_until = clock_timestamp() - interval '1 millisecond'
FROM leased l
WHERE c.job_id = l.job_id AND c.number = l.number
