-- Records that a process is alive and what it can work on.
-- Lock: the write transaction.
-- Index: the primary key.
INSERT INTO windlass_workers (name, slots, connections, handlers, only_job, process, started_at, seen_at)
VALUES (
    ?1, ?2, ?3, ?4, ?5, ?6, CAST(unixepoch('subsec') * 1000 AS INTEGER),
    CAST(unixepoch('subsec') * 1000 AS INTEGER)
)
ON CONFLICT (name) DO UPDATE
SET slots = excluded.slots,
    connections = excluded.connections,
    handlers = excluded.handlers,
    only_job = excluded.only_job,
    process = excluded.process,
    seen_at = excluded.seen_at
