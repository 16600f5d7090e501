-- Deletes a condition that ended before it was raised.
-- Lock: the write transaction.
-- Index: windlass_alerts_occurrence.
DELETE FROM windlass_alerts WHERE kind = ?1 AND subject = ?2 AND raised_at IS NULL
