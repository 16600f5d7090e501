-- Rows of the outbox that are due, oldest first. Lock: none: who submits one twice submits one job.
-- Index: windlass_outbox_due.
SELECT id, attempts, error
FROM windlass_outbox
WHERE next_at <= utc_timestamp(3)
ORDER BY next_at, id
LIMIT ?
