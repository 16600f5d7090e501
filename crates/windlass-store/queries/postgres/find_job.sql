-- The job with this id, without its sums. Lock: none. Index: the primary key.
SELECT id, status FROM windlass_jobs WHERE id = $1
