-- Records that a job has exceeded its failure budget.
-- Lock: the write transaction.
-- Index: the primary key.
UPDATE windlass_jobs SET exceeded_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) WHERE id = ?1
