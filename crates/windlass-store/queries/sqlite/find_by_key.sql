-- Finds the job of an idempotency key.
-- Lock: the write transaction.
-- Index: windlass_jobs_idempotency.
SELECT id, request
FROM windlass_jobs
WHERE job_type = ?1 AND submitter = ?2 AND idempotency_key = ?3
