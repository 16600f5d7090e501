-- Reads the type and submitter of jobs.
-- Lock: none.
-- Index: the primary key.
SELECT id, job_type, submitter FROM windlass_jobs WHERE id IN (SELECT value FROM json_each(?1))
