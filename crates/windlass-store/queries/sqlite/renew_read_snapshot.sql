-- Renews the lease of a read snapshot that is still needed: its job has chunks to read, and the snapshot is not
-- known to be lost.
-- Lock: the write transaction.
-- Index: the primary keys.
UPDATE windlass_read_snapshots
SET lease_until = CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?3
WHERE job_id = ?1
    AND number = ?2
    AND lease_until > 0
    AND EXISTS (
        SELECT 1
        FROM windlass_jobs j
        WHERE j.id = ?1
            AND j.status IN ('QUEUED', 'PROCESSING', 'PAUSED')
            AND j.open_segments + j.open_chunks > 0
            AND j.merge IS NOT 'begun'
    )
