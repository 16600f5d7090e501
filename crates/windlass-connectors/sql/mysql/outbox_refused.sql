-- Records why a row was refused, and when it is submitted again. Index: the primary key.
UPDATE windlass_outbox
SET attempts = least(attempts, 999999999) + 1, error = ?, next_at = utc_timestamp(3) + INTERVAL ? * 1000 MICROSECOND
WHERE id = ?
