-- Expires the leases of a worker's chunks. The next rescue returns them to PENDING.
-- Lock: the chunks that are not locked.
-- Index: windlass_chunks_processing.
WITH leased AS MATERIALIZED (
    SELECT job_id, number
    FROM windlass_chunks
    WHERE status = 'PROCESSING' AND worker = $1
    ORDER BY job_id, number
    FOR UPDATE SKIP LOCKED
)
UPDATE windlass_chunks c
SET lease_until = clock_timestamp() - interval '1 millisecond'
FROM leased l
WHERE c.job_id = l.job_id AND c.number = l.number
