-- Ends the segments of a cancelled job. They have no effect to fence; the new epoch refuses the
-- page of a loader that does not know yet.
-- Lock: the segments, after the job. Index: the primary key.
UPDATE windlass_segments
SET status = 'CANCELLED', epoch = epoch + 1, lease_until = NULL
WHERE job_id = $1 AND status IN ('PENDING', 'PROCESSING')
