-- Says why a schedule could not be fired. Lock: the writer's. Index: the primary key.
UPDATE windlass_schedules SET error = ?2 WHERE job_type = ?1
