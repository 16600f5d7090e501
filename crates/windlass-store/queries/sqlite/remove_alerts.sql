-- Deletes alerts that were raised more than ?1 milliseconds ago, except those that still hold or
-- are being delivered.
-- Lock: the write transaction.
-- Index: windlass_alerts_newest.
DELETE FROM windlass_alerts
WHERE raised_at < CAST(unixepoch('subsec') * 1000 AS INTEGER) - ?1
    AND (threshold IS NULL OR cleared_at IS NOT NULL)
    AND delivery <> 'pending'
