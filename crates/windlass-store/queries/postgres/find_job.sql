-- The job with this id, without its sums. One that is being cancelled is at work. Lock: none. Index: the primary key.
SELECT id, CASE WHEN status = 'CANCELLED' AND finished_at IS NULL THEN 'PROCESSING' ELSE status END AS status
FROM windlass_jobs WHERE id = $1
