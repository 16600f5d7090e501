-- Records the read snapshot that a job is planned under, and its holder.
-- Lock: the snapshot, after its job.
-- Index: the primary key.
INSERT INTO windlass_read_snapshots (job_id, number, server, name, fingerprint, worker, lease_until)
VALUES ($1, $2, $3, $4, $5, $6, clock_timestamp() + $7 * interval '1 millisecond')
ON CONFLICT (job_id) DO UPDATE
SET number = excluded.number,
    server = excluded.server,
    name = excluded.name,
    fingerprint = excluded.fingerprint,
    worker = excluded.worker,
    taken_at = clock_timestamp(),
    lease_until = excluded.lease_until
