-- Records that the output of a job was removed.
-- Lock: the write transaction.
-- Index: the primary key.
UPDATE windlass_jobs SET discard = 0 WHERE id = ?1
