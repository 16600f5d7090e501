-- The due rows of the outbox, oldest first. Skips rows that another relay has locked.
-- `windlass.in_transaction`: see advance.sql.
--
-- Lock: the rows, until they are submitted and deleted. Index: windlass_outbox_due.
SELECT id, attempts, error
FROM windlass_outbox
WHERE next_at <= clock_timestamp() AND current_setting('windlass.in_transaction', true) = 'on'
ORDER BY next_at, id
LIMIT $1
FOR UPDATE SKIP LOCKED
