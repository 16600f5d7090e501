-- The jobs that another is to come after, so that none of them ends while it is linked to them.
-- Lock: these jobs, shared, from the oldest on: a child is always younger than its parents, so that
-- locks go from parents to children everywhere. Index: the primary key.
SELECT id, status FROM windlass_jobs WHERE id = ANY ($1) ORDER BY created_at, id FOR SHARE
