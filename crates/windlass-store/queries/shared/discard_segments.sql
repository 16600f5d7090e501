-- Deletes the segments of a job that is planned again, except the plan itself.
-- Lock: the segments, after the job.
-- Index: the primary key.
DELETE FROM windlass_segments WHERE job_id = $1 AND number > 0
