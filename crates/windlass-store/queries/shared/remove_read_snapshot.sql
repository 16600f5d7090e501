-- Deletes the read snapshot of a job.
-- Lock: the snapshot.
-- Index: the primary key.
DELETE FROM windlass_read_snapshots WHERE job_id = $1
