-- The last migration that was applied. Lock: the writer's. Index: the primary key.
SELECT coalesce(max(number), 0) AS number FROM windlass_migrations
