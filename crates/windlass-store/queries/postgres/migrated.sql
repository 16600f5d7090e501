-- The last migration that was applied. Lock: none beyond the migration lock. Index: the primary key.
SELECT coalesce(max(number), 0) AS number FROM windlass_migrations
