-- The due rows of the outbox, oldest first. Lock: none, since submitting a row twice gives one job.
-- Index: windlass_outbox_due.
SELECT id, attempts, error
FROM windlass_outbox
WHERE next_at <= CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)
ORDER BY next_at, id
LIMIT ?1
