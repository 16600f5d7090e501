-- Says that a condition does not hold any more, and makes room for it to come back.
-- Lock: the row. Index: windlass_alerts_occurrence.
UPDATE windlass_alerts
SET cleared_at = clock_timestamp(), subject = subject || '@' || id
WHERE kind = $1 AND subject = $2 AND raised_at IS NOT NULL AND cleared_at IS NULL
