-- Lists alerts, newest first; with ?6 only those that are neither acknowledged nor over.
-- Lock: none (reads a snapshot).
-- Index: windlass_alerts_newest.
SELECT id, kind, job_type, job_id, message, details, raised_at, cleared_at, cleared_reason,
    acknowledged_at, acknowledged_by, delivery, attempts, next_at, delivered_at, error
FROM windlass_alerts
WHERE raised_at IS NOT NULL
    AND (?1 IS NULL OR submitter = ?1)
    AND (?4 IS NULL OR job_type IN (SELECT value FROM json_each(?4)))
    AND (?5 IS NULL OR id = ?5)
    AND (NOT ?6 OR acknowledged_at IS NULL AND cleared_at IS NULL)
    AND (?2 IS NULL OR (raised_at, id)
        < (SELECT b.raised_at, b.id FROM windlass_alerts b WHERE b.id = ?2))
ORDER BY raised_at DESC, id DESC
LIMIT ?3
