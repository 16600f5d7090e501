-- Deletes alerts that were raised more than $1 milliseconds ago, except those that still hold or
-- are being delivered.
-- Lock: the rows.
-- Index: windlass_alerts_newest.
DELETE FROM windlass_alerts
WHERE raised_at < clock_timestamp() - $1 * interval '1 millisecond'
    AND (threshold IS NULL OR cleared_at IS NOT NULL)
    AND delivery <> 'pending'
