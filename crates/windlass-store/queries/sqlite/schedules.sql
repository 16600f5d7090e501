-- All schedules, and what time it is. Lock: none, on a snapshot. Index: none, they are few.
SELECT job_type, spec, next_at, paused, last_at, last_job, error, CAST(unixepoch('subsec') * 1000 AS INTEGER) AS now
FROM windlass_schedules
ORDER BY job_type
