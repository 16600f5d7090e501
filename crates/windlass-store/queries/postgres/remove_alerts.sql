-- Removes alerts that were raised longer ago than $1 milliseconds, unless they hold still or are on
-- their way. Lock: the rows. Index: windlass_alerts_newest.
DELETE FROM windlass_alerts
WHERE raised_at < clock_timestamp() - $1 * interval '1 millisecond'
    AND (threshold IS NULL OR cleared_at IS NOT NULL)
    AND delivery <> 'pending'
