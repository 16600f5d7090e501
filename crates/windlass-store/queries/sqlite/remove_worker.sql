-- A process has ended in order; those that have been silent for a day go with it.
-- Lock: the writer's. Index: the primary key; the rest are few.
DELETE FROM windlass_workers
WHERE name = ?1 OR seen_at < CAST(unixepoch('subsec') * 1000 AS INTEGER) - 86400000
