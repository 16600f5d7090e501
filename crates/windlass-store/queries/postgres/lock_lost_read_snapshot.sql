-- Locks a read snapshot if its lease has expired.
-- Lock: the snapshot, after its job.
-- Index: the primary key.
SELECT number
FROM windlass_read_snapshots
WHERE job_id = $1 AND number = $2 AND lease_until < clock_timestamp()
FOR UPDATE
