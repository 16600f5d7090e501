-- Lists the job types of jobs that have ended.
-- Lock: none.
-- Index: windlass_jobs_ended.
SELECT DISTINCT job_type FROM windlass_jobs WHERE finished_at IS NOT NULL ORDER BY job_type
