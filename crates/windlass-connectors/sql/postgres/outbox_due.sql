-- The due rows of the outbox, oldest first. Skips rows that another relay has locked.
--
-- Lock: the rows, until they are submitted and deleted. Index: windlass_outbox_due.
SELECT id, attempts, error
FROM windlass_outbox
WHERE next_at <= clock_timestamp()
ORDER BY next_at, id
LIMIT $1
FOR UPDATE SKIP LOCKED
