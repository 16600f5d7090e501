-- The request of the job with this id. Lock: the writer's. Index: the primary key.
SELECT id, request FROM windlass_jobs WHERE id = ?1
