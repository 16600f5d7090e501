-- Locks a job and reads its state. The job is locked before its segments and chunks. The lock does
-- not include the key, so rows that refer to the job can be inserted meanwhile.
-- Lock: the job (FOR NO KEY UPDATE).
-- Index: the primary key.
SELECT id, status, started_at IS NOT NULL AS started, redrive, open_segments, open_chunks,
    chunks_total, items_total, budget_multiplier, failures, closed, merge
FROM windlass_jobs
WHERE id = $1
FOR NO KEY UPDATE
