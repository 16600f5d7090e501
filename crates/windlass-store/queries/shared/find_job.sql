-- Reads a job without its sums. A job that is being cancelled is reported as PROCESSING.
-- Lock: none.
-- Index: the primary key.
SELECT id, CASE WHEN status = 'CANCELLED' AND finished_at IS NULL THEN 'PROCESSING' ELSE status END AS status
FROM windlass_jobs WHERE id = $1
