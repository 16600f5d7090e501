-- Ends the segments of a cancelled job. The new epoch refuses the page of a loader that
-- does not know yet. The only effect to fence is the load of a merge, and the canceller does.
-- Lock: the segments, after the job. Index: the primary key.
UPDATE windlass_segments
SET status = 'CANCELLED', epoch = epoch + 1, lease_until = NULL
WHERE job_id = $1 AND status IN ('PENDING', 'PROCESSING')
