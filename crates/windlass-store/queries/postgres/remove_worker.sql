-- Deletes a process that has shut down, and those without a heartbeat for a day.
-- Lock: the rows.
-- Index: the primary key; the table is small.
DELETE FROM windlass_workers
WHERE name = $1 OR seen_at < clock_timestamp() - interval '1 day'
