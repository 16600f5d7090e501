-- Deletes the ledger rows of a job. Lock: the table for other writers.
DELETE FROM windlass_ledger WHERE job_id = {job}
