-- The due rows of the outbox, oldest first. Lock: none, since submitting a row twice gives one job.
-- Index: windlass_outbox_due.
SELECT id, attempts, error
FROM windlass_outbox
WHERE next_at <= utc_timestamp(3)
ORDER BY next_at, id
LIMIT ?
