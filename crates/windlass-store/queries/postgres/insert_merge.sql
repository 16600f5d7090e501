-- Inserts the merge segment of a job, after its other segments.
-- Lock: the new row; the job is locked.
-- Index: the primary key.
INSERT INTO windlass_segments (job_id, number, state, key_range)
SELECT $1, coalesce(max(number) + 1, 0), $2, $3 FROM windlass_segments WHERE job_id = $1
