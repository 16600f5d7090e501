-- Leases the alert that has been due the longest, for $1 milliseconds.
-- Lock: the row; rows that another process is leasing are skipped.
-- Index: windlass_alerts_pending.
WITH due AS MATERIALIZED (
    SELECT id
    FROM windlass_alerts
    WHERE delivery = 'pending' AND raised_at IS NOT NULL AND next_at <= clock_timestamp()
    ORDER BY next_at
    LIMIT 1
    FOR UPDATE SKIP LOCKED
)
UPDATE windlass_alerts a
SET attempts = a.attempts + 1, next_at = clock_timestamp() + $1 * interval '1 millisecond'
FROM due d
WHERE a.id = d.id
RETURNING a.id, a.kind, a.job_type, a.job_id, a.message, a.details, a.raised_at, a.cleared_at,
    a.cleared_reason, a.acknowledged_at, a.acknowledged_by, a.delivery,
    a.attempts, a.next_at, a.delivered_at, a.error
