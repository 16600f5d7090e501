-- Leases the alert that has been due the longest, for ?1 milliseconds.
-- Lock: the write transaction.
-- Index: windlass_alerts_pending.
UPDATE windlass_alerts
SET attempts = attempts + 1, next_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?1
WHERE id = (
    SELECT id
    FROM windlass_alerts
    WHERE delivery = 'pending'
        AND raised_at IS NOT NULL
        AND next_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER)
    ORDER BY next_at
    LIMIT 1
)
RETURNING id, kind, job_type, job_id, message, details, raised_at, cleared_at,
    cleared_reason, acknowledged_at, acknowledged_by, delivery, attempts, next_at,
    delivered_at, error
