-- A process has ended in order; those that have been silent for a day go with it.
-- Lock: the rows. Index: the primary key; the rest are few.
DELETE FROM windlass_workers
WHERE name = $1 OR seen_at < clock_timestamp() - interval '1 day'
