-- Expires the leases of the read snapshots that a worker held. They cannot be renewed any more.
-- Lock: the snapshots.
-- Index: windlass_read_snapshots_held.
UPDATE windlass_read_snapshots
SET lease_until = to_timestamp(0)
WHERE lease_until IS NOT NULL AND worker = $1
