-- Rows of the outbox that are due, oldest first. Lock: none: who submits one twice submits one job.
-- Index: windlass_outbox_due.
SELECT id, attempts, error
FROM windlass_outbox
WHERE next_at <= CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)
ORDER BY next_at, id
LIMIT ?1
