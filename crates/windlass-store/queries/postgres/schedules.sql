-- All schedules, and what time it is. Lock: none. Index: none, they are few.
SELECT job_type, spec, next_at, paused, last_at, last_job, error, clock_timestamp() AS now
FROM windlass_schedules
ORDER BY job_type
