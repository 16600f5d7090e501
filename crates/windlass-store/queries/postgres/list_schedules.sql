-- Lists all schedules, and reads the clock.
-- Lock: none.
-- Index: none; the table is small.
SELECT job_type, spec, next_at, paused, last_at, last_job, error, clock_timestamp() AS now
FROM windlass_schedules
ORDER BY job_type
