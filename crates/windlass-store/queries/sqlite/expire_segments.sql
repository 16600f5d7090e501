-- Expires the leases of a worker's segments. The next rescue returns them to PENDING.
-- Lock: the write transaction.
-- Index: windlass_segments_processing.
UPDATE windlass_segments
SET lease_until = CAST(unixepoch('subsec') * 1000 AS INTEGER) - 1
WHERE status = 'PROCESSING' AND worker = ?1
