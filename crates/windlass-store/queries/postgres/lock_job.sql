-- What the rules need to know of a job, under its lock. Lock: the job, first of all; not its key,
-- so that rows which refer to it can be inserted meanwhile. Index: the primary key.
SELECT id, status, started_at IS NOT NULL AS started, redrive, open_segments, open_chunks,
    chunks_total, items_total, grants, failures, closed, merge
FROM windlass_jobs
WHERE id = $1
FOR NO KEY UPDATE
