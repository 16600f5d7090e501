-- Records that the merge of a job has begun, when all its chunks are completed.
-- Lock: the job (already locked).
-- Index: the primary key.
UPDATE windlass_jobs SET merge = 'begun', open_segments = open_segments + 1 WHERE id = $1
