-- The triggers that could not be submitted yet, and why. Lock: none. Index: none, they are few.
SELECT id, request, identity, root, attempts, error
FROM windlass_triggers
ORDER BY available_at, id
LIMIT $1
