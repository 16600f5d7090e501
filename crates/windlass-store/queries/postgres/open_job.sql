-- Counts so many more (or fewer) segments and chunks as open.
-- Lock: the job, held already. Index: the primary key.
UPDATE windlass_jobs
SET open_segments = open_segments + $2, open_chunks = open_chunks + $3
WHERE id = $1
