-- What has ended is pruned by age, a job type at a time. A closed job is never worked again: its
-- chunks and its ledger may be gone.
DROP INDEX windlass_jobs_prunable;
ALTER TABLE windlass_jobs RENAME COLUMN ledger_pruned TO closed;
CREATE INDEX windlass_jobs_ended ON windlass_jobs (job_type, finished_at)
    WHERE finished_at IS NOT NULL;
