-- Locks the parents of a new job, so that none of them ends while it is linked to them. A job that
-- is being cancelled is reported as PROCESSING. The oldest parent is locked first: children are
-- younger than their parents, so all transactions lock parents before children.
-- Lock: the parents, shared.
-- Index: the primary key.
SELECT id, CASE WHEN status = 'CANCELLED' AND finished_at IS NULL THEN 'PROCESSING' ELSE status END AS status
FROM windlass_jobs
WHERE id = ANY ($1)
ORDER BY created_at, id
FOR SHARE
