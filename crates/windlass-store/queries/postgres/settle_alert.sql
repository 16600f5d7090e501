-- Says what came of posting an alert: an error, after which it is tried again in $4 milliseconds
-- unless it was raised longer ago than $5, or none. Whoever has taken it since at a later attempt says
-- it instead. Lock: the row. Index: the primary key.
UPDATE windlass_alerts
SET error = $3::text,
    delivery = CASE
        WHEN $3::text IS NULL THEN 'delivered'
        WHEN raised_at < clock_timestamp() - $5 * interval '1 millisecond' THEN 'given-up'
        ELSE delivery
    END,
    delivered_at = CASE WHEN $3::text IS NULL THEN clock_timestamp() END,
    next_at = clock_timestamp() + $4 * interval '1 millisecond'
WHERE id = $1 AND attempts = $2 AND delivery = 'pending'
RETURNING delivery
