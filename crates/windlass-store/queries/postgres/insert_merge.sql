-- Inserts the segment that merges a job, after its others. Lock: the new row, under the job's lock.
-- Index: the primary key.
INSERT INTO windlass_segments (job_id, number, state, key_range)
SELECT $1, coalesce(max(number) + 1, 0), $2, $3 FROM windlass_segments WHERE job_id = $1
