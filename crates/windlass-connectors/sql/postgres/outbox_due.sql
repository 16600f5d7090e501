-- Rows of the outbox that are due, oldest first. What another relay holds is left to it.
--
-- Lock: the rows, until they are submitted and removed. Index: windlass_outbox_due.
SELECT id, attempts, error
FROM windlass_outbox
WHERE next_at <= clock_timestamp()
ORDER BY next_at, id
LIMIT $1
FOR UPDATE SKIP LOCKED
