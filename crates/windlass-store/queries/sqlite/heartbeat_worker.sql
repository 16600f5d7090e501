-- A process says that it works, and on what it can. Lock: the writer's. Index: the primary key.
INSERT INTO windlass_workers (name, slots, connections, handlers, only_job, started_at, seen_at)
VALUES (
    ?1, ?2, ?3, ?4, ?5, CAST(unixepoch('subsec') * 1000 AS INTEGER),
    CAST(unixepoch('subsec') * 1000 AS INTEGER)
)
ON CONFLICT (name) DO UPDATE
SET slots = excluded.slots,
    connections = excluded.connections,
    handlers = excluded.handlers,
    only_job = excluded.only_job,
    seen_at = excluded.seen_at
