-- Deletes the rows that a job emitted. Lock: the write lock of the file. Index: the primary key's first column.
DELETE FROM windlass_emitted WHERE job_id = ?1
