-- Records that a process is alive and what it can work on.
-- Lock: the row.
-- Index: the primary key.
INSERT INTO windlass_workers (name, slots, connections, handlers, only_job, process)
VALUES ($1, $2, $3, $4, $5, $6)
ON CONFLICT (name) DO UPDATE
SET slots = excluded.slots,
    connections = excluded.connections,
    handlers = excluded.handlers,
    only_job = excluded.only_job,
    process = excluded.process,
    seen_at = clock_timestamp()
