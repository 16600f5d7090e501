-- Remembers that a job's ledger rows are gone. Lock: the job. Index: the primary key.
UPDATE windlass_jobs SET ledger_pruned = true WHERE id = $1
