-- Lists a job with its ancestors and descendants, and the other parents of the descendants. A job
-- that is being cancelled is reported as PROCESSING.
-- Lock: none.
-- Index: the primary keys; windlass_links_parent.
WITH RECURSIVE up AS (
    SELECT $1 AS id
    UNION
    SELECT l.parent FROM up JOIN windlass_links l ON l.child = up.id
),
down AS (
    SELECT $1 AS id
    UNION
    SELECT l.child FROM down JOIN windlass_links l ON l.parent = down.id
)
SELECT j.id, j.job_type,
    CASE WHEN j.status = 'CANCELLED' AND j.finished_at IS NULL THEN 'PROCESSING' ELSE j.status END AS status,
    j.submitter, j.created_at,
    (
        SELECT string_agg(CAST(l.parent AS text), ' ' ORDER BY l.parent)
        FROM windlass_links l
        WHERE l.child = j.id
    ) AS parents
FROM windlass_jobs j
WHERE j.id IN (
    SELECT id FROM up
    UNION
    SELECT id FROM down
    UNION
    SELECT l.parent FROM down JOIN windlass_links l ON l.child = down.id
)
ORDER BY j.created_at, j.id
LIMIT $2
