-- Reads what jobs were submitted with, by their ids.
-- Lock: none.
-- Index: the primary key.
SELECT id, root, job_type, definition, request, identity FROM windlass_jobs WHERE id = ANY($1)
