-- Reads what a job was submitted with.
-- Lock: none.
-- Index: the primary key.
SELECT id, root, job_type, definition, request, identity FROM windlass_jobs WHERE id = ?1
