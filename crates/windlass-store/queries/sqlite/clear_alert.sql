-- Ends a condition with a reason, and changes its subject so that it can be raised again. An alert
-- that is posted is posted once more, with its end. The attempt is counted, so that a delivery that
-- began before does not settle this one.
-- Lock: the write transaction.
-- Index: windlass_alerts_occurrence.
UPDATE windlass_alerts
SET cleared_at = CAST(unixepoch('subsec') * 1000 AS INTEGER),
    cleared_reason = ?3,
    subject = subject || '@' || id,
    delivery = CASE WHEN delivery = 'logged' THEN delivery ELSE 'pending' END,
    attempts = attempts + 1,
    next_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE kind = ?1 AND subject = ?2 AND raised_at IS NOT NULL AND cleared_at IS NULL
