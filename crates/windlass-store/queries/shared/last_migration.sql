-- Reads the number of the last applied migration.
-- Lock: none (the migration lock is held, if any).
-- Index: the primary key.
SELECT coalesce(max(number), 0) AS number FROM windlass_migrations
