-- Records that a read snapshot is not held any more, unless its job still has chunks to read: then it is lost.
-- Lock: the snapshot.
-- Index: the primary keys.
UPDATE windlass_read_snapshots
SET lease_until = NULL
WHERE job_id = $1
    AND number = $2
    AND NOT EXISTS (
        SELECT 1
        FROM windlass_jobs j
        WHERE j.id = $1
            AND j.status IN ('QUEUED', 'PROCESSING', 'PAUSED')
            AND j.open_segments + j.open_chunks > 0
            AND coalesce(j.merge, '') <> 'begun'
    )
