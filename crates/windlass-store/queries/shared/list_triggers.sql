-- Lists the triggers whose jobs were not submitted yet. A process that is killed after the submit leaves its
-- trigger for the next process, which deletes it.
-- Lock: none.
-- Index: none, the table is small; the primary key of the jobs.
SELECT id, request, identity, root, attempts, error
FROM windlass_triggers t
WHERE NOT EXISTS (SELECT 1 FROM windlass_jobs j WHERE j.id = t.id)
ORDER BY available_at, id
LIMIT $1
