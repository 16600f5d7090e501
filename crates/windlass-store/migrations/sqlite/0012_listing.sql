-- Listing the jobs that have not ended, or those of a type, looks at those alone, however many others
-- there are.
CREATE INDEX windlass_jobs_open ON windlass_jobs (created_at, id)
    WHERE status IN ('QUEUED', 'PROCESSING', 'PAUSED');
CREATE INDEX windlass_jobs_type ON windlass_jobs (job_type, created_at, id);
