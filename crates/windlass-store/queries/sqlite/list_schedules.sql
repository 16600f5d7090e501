-- Lists all schedules, and reads the clock.
-- Lock: none (reads a snapshot).
-- Index: none; the table is small.
SELECT job_type, spec, next_at, paused, last_at, last_job, error, CAST(unixepoch('subsec') * 1000 AS INTEGER) AS now
FROM windlass_schedules
ORDER BY job_type
