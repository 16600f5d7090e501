-- Leases triggers that are due, for ?2 milliseconds. If this process dies, another one leases them
-- after that.
-- Lock: the write transaction.
-- Index: none; the table is small.
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
