-- Removes a job's segments. Lock: the writer's.
-- Index: the primary key.
DELETE FROM windlass_segments WHERE job_id = ?1
