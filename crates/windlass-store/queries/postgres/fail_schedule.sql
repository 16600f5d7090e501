-- Says why a schedule could not be fired. Lock: its row. Index: the primary key.
UPDATE windlass_schedules SET error = $2 WHERE job_type = $1
