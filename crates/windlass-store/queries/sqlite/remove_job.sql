-- Removes a closed job of which nothing else is left. Lock: the writer's. Index: the primary key.
DELETE FROM windlass_jobs WHERE id = ?1 AND closed = 1
