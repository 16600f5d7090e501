-- Finds the job of an idempotency key.
-- Lock: none.
-- Index: windlass_jobs_idempotency.
SELECT id, request
FROM windlass_jobs
WHERE job_type = $1 AND submitter = $2 AND md5(idempotency_key) = md5($3::text) AND idempotency_key = $3
