-- Removes the parts of a job. Lock: the writer's. Index: the primary key.
DELETE FROM windlass_parts WHERE job_id = ?1
