-- Takes triggers that are due, for ?2 milliseconds: another process takes them then, should this one
-- die. Lock: the writer's. Index: none, they are few.
UPDATE windlass_triggers
SET available_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?2
WHERE id IN (
    SELECT id
    FROM windlass_triggers
    WHERE available_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER)
    ORDER BY available_at, id
    LIMIT ?1
)
RETURNING id, request, identity, root, attempts, error
