-- Reads the number of the last applied migration.
-- Lock: the write transaction.
-- Index: the primary key.
SELECT coalesce(max(number), 0) AS number FROM windlass_migrations
