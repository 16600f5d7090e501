-- Forgets the held items of a job. Lock: the file's one writer. Index: the primary key's first column.
DELETE FROM windlass_deferred WHERE job_id = ?1
