-- Records why a schedule could not fire.
-- Lock: the row.
-- Index: the primary key.
UPDATE windlass_schedules SET error = $2 WHERE job_type = $1
