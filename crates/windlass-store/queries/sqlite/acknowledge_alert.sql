-- Records who has acknowledged an alert. The first one stays.
-- Lock: the write transaction.
-- Index: the primary key.
UPDATE windlass_alerts
SET acknowledged_at = CAST(unixepoch('subsec') * 1000 AS INTEGER), acknowledged_by = ?2
WHERE id = ?1 AND raised_at IS NOT NULL AND acknowledged_at IS NULL
