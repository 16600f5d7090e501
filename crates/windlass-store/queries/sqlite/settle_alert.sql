-- Records the result of posting an alert. After an error it is posted again in ?4 milliseconds,
-- unless it was raised, or its condition ended, more than ?5 milliseconds ago. Changes nothing if a
-- later attempt has begun meanwhile.
-- Lock: the write transaction.
-- Index: the primary key.
UPDATE windlass_alerts
SET error = ?3,
    delivery = CASE
        WHEN ?3 IS NULL THEN 'delivered'
        WHEN coalesce(cleared_at, raised_at) < CAST(unixepoch('subsec') * 1000 AS INTEGER) - ?5 THEN 'given-up'
        ELSE delivery
    END,
    delivered_at = CASE WHEN ?3 IS NULL THEN CAST(unixepoch('subsec') * 1000 AS INTEGER) END,
    next_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?4
WHERE id = ?1 AND attempts = ?2 AND delivery = 'pending'
RETURNING delivery
