-- Expires the leases of the read snapshots that a worker held. They cannot be renewed any more.
-- Lock: the write transaction.
-- Index: windlass_read_snapshots_held.
UPDATE windlass_read_snapshots
SET lease_until = 0
WHERE lease_until IS NOT NULL AND worker = ?1
