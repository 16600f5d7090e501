-- Records who has acknowledged an alert. The first one stays.
-- Lock: the row.
-- Index: the primary key.
UPDATE windlass_alerts
SET acknowledged_at = clock_timestamp(), acknowledged_by = $2
WHERE id = $1 AND raised_at IS NOT NULL AND acknowledged_at IS NULL
