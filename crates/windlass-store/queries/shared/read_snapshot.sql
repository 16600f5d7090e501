-- Reads the read snapshot of a job.
-- Lock: none.
-- Index: the primary key.
SELECT number, server, name, fingerprint, lease_until
FROM windlass_read_snapshots
WHERE job_id = $1
