-- Lists the conditions of a kind that are recorded or raised, with their thresholds.
-- Lock: none.
-- Index: windlass_alerts_occurrence.
SELECT subject, threshold
FROM windlass_alerts
WHERE kind = $1 AND threshold IS NOT NULL AND cleared_at IS NULL
ORDER BY subject
