-- Ends the segments of a cancelled job, except a merge ($2 is its state) that was ever leased: its
-- load may still commit and is fenced first. The new epoch refuses pages of a planner that does not
-- know of the cancel yet.
-- Lock: the segments, after the job.
-- Index: the primary key.
UPDATE windlass_segments
SET status = 'CANCELLED', epoch = epoch + 1, lease_until = NULL
WHERE job_id = $1 AND status IN ('PENDING', 'PROCESSING') AND NOT (state = $2 AND epoch > 0)
