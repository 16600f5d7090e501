-- A row that was refused keeps the reason, and is tried again later. Index: the primary key.
UPDATE windlass_outbox
SET attempts = least(attempts, 999999999) + 1, error = ?, next_at = utc_timestamp(3) + INTERVAL ? * 1000 MICROSECOND
WHERE id = ?
