-- Deletes the segments of a job that is closed or has ended for good.
-- Lock: the segments.
-- Index: the primary key.
DELETE FROM windlass_segments WHERE job_id = $1
