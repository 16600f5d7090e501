-- Renews a valid lease of a segment.
-- Lock: the write transaction.
-- Index: the primary key.
UPDATE windlass_segments
SET lease_until = CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?4
WHERE job_id = ?1 AND number = ?2 AND epoch = ?3 AND nonce = ?5 AND status = 'PROCESSING'
