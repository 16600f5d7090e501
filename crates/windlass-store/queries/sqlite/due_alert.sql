-- Checks whether an alert is due.
-- Lock: none (reads a snapshot).
-- Index: windlass_alerts_pending.
SELECT 1
FROM windlass_alerts
WHERE delivery = 'pending'
    AND raised_at IS NOT NULL
    AND next_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER)
LIMIT 1
