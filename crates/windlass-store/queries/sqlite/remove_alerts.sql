-- Removes alerts that were raised longer ago than ?1 milliseconds, unless they hold still or are on
-- their way. Lock: the writer's. Index: windlass_alerts_newest.
DELETE FROM windlass_alerts
WHERE raised_at < CAST(unixepoch('subsec') * 1000 AS INTEGER) - ?1
    AND (threshold IS NULL OR cleared_at IS NOT NULL)
    AND delivery <> 'pending'
