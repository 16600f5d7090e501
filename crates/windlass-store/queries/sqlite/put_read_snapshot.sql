-- Records the read snapshot that a job is planned under, and its holder.
-- Lock: the write transaction.
-- Index: the primary key.
INSERT INTO windlass_read_snapshots (job_id, number, server, name, fingerprint, worker, taken_at, lease_until)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, CAST(unixepoch('subsec') * 1000 AS INTEGER),
    CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?7)
ON CONFLICT (job_id) DO UPDATE
SET number = excluded.number,
    server = excluded.server,
    name = excluded.name,
    fingerprint = excluded.fingerprint,
    worker = excluded.worker,
    taken_at = excluded.taken_at,
    lease_until = excluded.lease_until
