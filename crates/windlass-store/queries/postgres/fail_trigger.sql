-- Records why a trigger could not be submitted. It is tried again after $3 milliseconds.
-- Lock: the trigger.
-- Index: the primary key.
UPDATE windlass_triggers
SET attempts = attempts + 1,
    error = $2,
    available_at = clock_timestamp() + $3 * interval '1 millisecond'
WHERE id = $1
