-- Forgets the rows that a job emitted. Lock: the file's one writer. Index: the primary key's first column.
DELETE FROM windlass_emitted WHERE job_id = ?1
