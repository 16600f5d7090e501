-- Counts the dead items of a job. Runs only for a job with a failure budget, after a chunk with
-- dead letters.
-- Lock: none (the job is locked).
-- Index: the primary key.
SELECT coalesce(sum(dead), 0)::bigint AS dead FROM windlass_chunks WHERE job_id = $1
