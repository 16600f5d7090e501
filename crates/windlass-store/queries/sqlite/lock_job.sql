-- What the rules need to know of a job. Lock: the writer's. Index: the primary key.
SELECT id, status, started_at IS NOT NULL AS started, redrive, open_segments, open_chunks,
    chunks_total, items_total, grants, failures, closed, merge
FROM windlass_jobs
WHERE id = ?1
