-- Holds a subject for so many milliseconds: of a job type, no chunk is claimed meanwhile. A longer
-- hold stands; of a connection the last one does, since it only tells the state of its database.
-- Lock: the writer's. Index: the primary key.
INSERT INTO windlass_controls AS c (subject, held_until, reason)
VALUES (?1, CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?2, ?3)
ON CONFLICT (subject) DO UPDATE
SET held_until = excluded.held_until, reason = excluded.reason
WHERE c.held_until IS NULL OR c.held_until < excluded.held_until OR c.subject LIKE 'connection:%'
