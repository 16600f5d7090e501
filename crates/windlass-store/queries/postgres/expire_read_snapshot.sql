-- Expires the lease of a read snapshot that is lost, so that its job is read again. It cannot be renewed any more.
-- Lock: the snapshot.
-- Index: the primary key.
UPDATE windlass_read_snapshots
SET lease_until = to_timestamp(0)
WHERE job_id = $1 AND number = $2 AND lease_until IS NOT NULL
