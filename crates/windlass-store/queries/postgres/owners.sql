-- Reads the type and submitter of jobs.
-- Lock: none.
-- Index: the primary key.
SELECT id, job_type, submitter FROM windlass_jobs WHERE id = ANY ($1)
