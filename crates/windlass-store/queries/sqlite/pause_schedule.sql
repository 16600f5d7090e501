-- Pauses a schedule, or lets it go on from this time. Lock: the writer's. Index: the primary key.
UPDATE windlass_schedules
SET paused = ?2, next_at = coalesce(?3, next_at)
WHERE job_type = ?1
