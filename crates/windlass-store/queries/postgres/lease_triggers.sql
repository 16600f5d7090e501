-- Leases triggers that are due, for $2 milliseconds. If this process dies, another one leases them
-- after that.
-- Lock: the leased triggers.
-- Index: none; the table is small.
UPDATE windlass_triggers t
SET available_at = clock_timestamp() + $2 * interval '1 millisecond'
FROM (
    SELECT id
    FROM windlass_triggers
    WHERE available_at <= clock_timestamp()
    ORDER BY available_at, id
    LIMIT $1
    FOR UPDATE SKIP LOCKED
) due
WHERE t.id = due.id
RETURNING t.id, t.request, t.identity, t.root, t.attempts, t.error
