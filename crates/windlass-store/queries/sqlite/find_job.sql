-- The job with this id, without its sums. Lock: the writer's. Index: the primary key.
SELECT id, status FROM windlass_jobs WHERE id = ?1
