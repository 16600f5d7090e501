-- What the rules need to know of a job that has ended. Lock: the writer's. Index: the primary key.
SELECT id, root, job_type, status, request, identity, rules FROM windlass_jobs WHERE id = ?1
