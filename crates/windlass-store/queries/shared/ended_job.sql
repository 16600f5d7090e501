-- Reads what the dependency rules need to know about an ended job.
-- Lock: none.
-- Index: the primary key.
SELECT id, root, job_type, status, request, identity, rules FROM windlass_jobs WHERE id = $1
