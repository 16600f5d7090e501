-- Deletes a condition that ended before it was raised.
-- Lock: the row.
-- Index: windlass_alerts_occurrence.
DELETE FROM windlass_alerts WHERE kind = $1 AND subject = $2 AND raised_at IS NULL
