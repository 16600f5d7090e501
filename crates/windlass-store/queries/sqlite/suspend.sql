-- Suspends a subject for some milliseconds; chunks of a suspended job type are not leased. A
-- longer suspension is kept, except for a connection, where it only shows the health of its
-- database.
-- Lock: the write transaction.
-- Index: the primary key.
INSERT INTO windlass_controls AS c (subject, suspended_until, reason)
VALUES (?1, CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?2, ?3)
ON CONFLICT (subject) DO UPDATE
SET suspended_until = excluded.suspended_until, reason = excluded.reason
WHERE c.suspended_until IS NULL OR c.suspended_until < excluded.suspended_until OR c.subject LIKE 'connection:%'
