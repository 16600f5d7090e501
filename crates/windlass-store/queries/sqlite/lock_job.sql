-- Reads the state of a job.
-- Lock: the write transaction.
-- Index: the primary key.
SELECT id, status, started_at IS NOT NULL AS started, redrive, open_segments, open_chunks,
    chunks_total, items_total, budget_multiplier, failures, closed, merge
FROM windlass_jobs
WHERE id = ?1
