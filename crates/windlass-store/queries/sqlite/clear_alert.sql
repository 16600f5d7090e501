-- Ends a condition, and changes its subject so that it can be raised again.
-- Lock: the write transaction.
-- Index: windlass_alerts_occurrence.
UPDATE windlass_alerts
SET cleared_at = CAST(unixepoch('subsec') * 1000 AS INTEGER), subject = subject || '@' || id
WHERE kind = ?1 AND subject = ?2 AND raised_at IS NOT NULL AND cleared_at IS NULL
