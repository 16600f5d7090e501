-- Lists the jobs that wait for an ended job, with the status of that job.
-- Lock: none.
-- Index: windlass_links_parent; the primary key.
SELECT l.child, c.created_at, c.on_failed, l.parent, p.status
FROM windlass_links l
    JOIN windlass_jobs c ON c.id = l.child
    JOIN windlass_jobs p ON p.id = l.parent
WHERE l.parent = $1 AND l.waits
