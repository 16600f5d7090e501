-- A job whose chunks are all completed is merged. Lock: the writer's. Index: the primary key.
UPDATE windlass_jobs SET merge = 'begun', open_segments = open_segments + 1 WHERE id = ?1
