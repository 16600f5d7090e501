-- Deletes all chunks of a job that is planned again. A worker that has leased one of them loses its lease.
-- Lock: the chunks, after the job.
-- Index: the primary key.
DELETE FROM windlass_chunks WHERE job_id = $1
