-- Counts the loss of a read snapshot: $2 more, or none since a retry if $2 is 0.
-- Lock: the snapshot, after its job.
-- Index: the primary key.
UPDATE windlass_read_snapshots
SET lease_until = NULL, losses = CASE $2 WHEN 0 THEN 0 ELSE losses + $2 END
WHERE job_id = $1
