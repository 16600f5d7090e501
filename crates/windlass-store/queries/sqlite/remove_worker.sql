-- Deletes a process that has shut down, and those without a heartbeat for a day.
-- Lock: the write transaction.
-- Index: the primary key; the table is small.
DELETE FROM windlass_workers
WHERE name = ?1 OR seen_at < CAST(unixepoch('subsec') * 1000 AS INTEGER) - 86400000
