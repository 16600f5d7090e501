-- Removes a job's segments. Lock: the segments; the job is closed or ended for good.
-- Index: the primary key.
DELETE FROM windlass_segments WHERE job_id = $1
