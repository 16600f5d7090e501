-- Lists the triggers that were not submitted yet.
-- Lock: none.
-- Index: none; the table is small.
SELECT id, request, identity, root, attempts, error
FROM windlass_triggers
ORDER BY available_at, id
LIMIT $1
