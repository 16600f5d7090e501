-- Expires the leases of a worker's chunks. The next rescue returns them to PENDING.
-- Lock: the write transaction.
-- Index: windlass_chunks_processing.
UPDATE windlass_chunks
SET lease_until = CAST(unixepoch('subsec') * 1000 AS INTEGER) - 1
WHERE status = 'PROCESSING' AND worker = ?1
