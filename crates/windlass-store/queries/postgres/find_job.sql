-- The request of the job with this id. Lock: none. Index: the primary key.
SELECT id, request FROM windlass_jobs WHERE id = $1
