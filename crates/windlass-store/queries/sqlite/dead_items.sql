-- How many items of a job are dead so far. Lock: the writer's.
-- Index: the primary key; asked only where a job has a failure budget and a chunk had dead letters.
SELECT coalesce(sum(dead), 0) AS dead FROM windlass_chunks WHERE job_id = ?1
