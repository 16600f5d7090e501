-- Inserts an alert, unless it exists. A condition that must last $10 milliseconds is only recorded
-- until it has. If it was not seen for $11 milliseconds, its duration is measured anew. Returns
-- whether this call raised the alert.
-- Lock: the row.
-- Index: windlass_alerts_occurrence.
INSERT INTO windlass_alerts AS a
    (id, kind, subject, job_type, job_id, submitter, message, details, threshold, delivery, since,
        seen_at, raised_at, next_at)
SELECT
    $1, $2, $3, $4, $5, $6, $7, $8, $9, $12, t.now, t.now, CASE WHEN $10 = 0 THEN t.now END, t.now
FROM (SELECT clock_timestamp() AS now) t
ON CONFLICT (kind, subject) DO UPDATE
SET message = excluded.message,
    details = excluded.details,
    threshold = excluded.threshold,
    delivery = excluded.delivery,
    since = CASE
        WHEN a.seen_at < excluded.seen_at - $11 * interval '1 millisecond' THEN excluded.since
        ELSE a.since
    END,
    seen_at = excluded.seen_at,
    raised_at = CASE
        WHEN a.seen_at >= excluded.seen_at - $11 * interval '1 millisecond'
            AND a.since <= excluded.seen_at - $10 * interval '1 millisecond'
        THEN excluded.seen_at
    END,
    next_at = excluded.next_at
WHERE a.raised_at IS NULL
RETURNING raised_at IS NOT NULL AS raised
