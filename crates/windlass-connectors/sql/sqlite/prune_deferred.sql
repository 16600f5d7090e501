-- Deletes the deferred items of a job. Lock: the write lock of the file. Index: the primary key's first column.
DELETE FROM windlass_deferred WHERE job_id = ?1
