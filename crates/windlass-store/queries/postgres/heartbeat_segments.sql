-- Renews valid leases of segments. It changes no indexed column.
-- Lock: the segments.
-- Index: the primary key.
UPDATE windlass_segments s
SET lease_until = clock_timestamp() + $4 * interval '1 millisecond'
FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $5::bigint[]) AS b (job, number, epoch, nonce)
WHERE s.job_id = b.job AND s.number = b.number AND s.epoch = b.epoch AND s.nonce = b.nonce
    AND s.status = 'PROCESSING'
