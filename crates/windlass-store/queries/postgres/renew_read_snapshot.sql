-- Renews the lease of a read snapshot that is still needed: its job has chunks to read, and the snapshot is not
-- known to be lost.
-- Lock: the snapshot.
-- Index: the primary keys.
UPDATE windlass_read_snapshots s
SET lease_until = clock_timestamp() + $3 * interval '1 millisecond'
FROM windlass_jobs j
WHERE s.job_id = $1
    AND s.number = $2
    AND s.lease_until > to_timestamp(0)
    AND j.id = $1
    AND j.status IN ('QUEUED', 'PROCESSING', 'PAUSED')
    AND j.open_segments + j.open_chunks > 0
    AND j.merge IS DISTINCT FROM 'begun'
