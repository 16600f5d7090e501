-- Records why a row was refused, and when it is submitted again.
--
-- Lock: the row, already locked. Index: the primary key.
UPDATE windlass_outbox
SET attempts = least(attempts, 999999999) + 1,
    error = $2,
    next_at = clock_timestamp() + $3 * interval '1 millisecond'
WHERE id = $1
