-- Locks a read snapshot if its lease has expired.
-- Lock: the write transaction.
-- Index: the primary key.
SELECT number
FROM windlass_read_snapshots
WHERE job_id = ?1 AND number = ?2 AND lease_until < CAST(unixepoch('subsec') * 1000 AS INTEGER)
