-- Records the result of posting an alert. After an error it is posted again in $4 milliseconds,
-- unless it was raised, or its condition ended, more than $5 milliseconds ago. Changes nothing if a
-- later attempt has begun meanwhile.
-- Lock: the row.
-- Index: the primary key.
UPDATE windlass_alerts
SET error = $3::text,
    delivery = CASE
        WHEN $3::text IS NULL THEN 'delivered'
        WHEN coalesce(cleared_at, raised_at) < clock_timestamp() - $5 * interval '1 millisecond' THEN 'given-up'
        ELSE delivery
    END,
    delivered_at = CASE WHEN $3::text IS NULL THEN clock_timestamp() END,
    next_at = clock_timestamp() + $4 * interval '1 millisecond'
WHERE id = $1 AND attempts = $2 AND delivery = 'pending'
RETURNING delivery
