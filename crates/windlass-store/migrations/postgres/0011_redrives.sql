-- Redrives of a job are found by it: what they put out belongs to one result.
CREATE INDEX windlass_jobs_redrives ON windlass_jobs (root) WHERE redrive;
