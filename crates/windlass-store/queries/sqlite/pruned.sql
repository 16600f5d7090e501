-- Remembers that a job's ledger rows are gone. Lock: the writer's. Index: the primary key.
UPDATE windlass_jobs SET ledger_pruned = 1 WHERE id = ?1
