-- A process says that it works. Lock: the writer's. Index: the primary key.
INSERT INTO windlass_workers (name, slots, started_at, seen_at)
VALUES (?1, ?2, CAST(unixepoch('subsec') * 1000 AS INTEGER), CAST(unixepoch('subsec') * 1000 AS INTEGER))
ON CONFLICT (name) DO UPDATE SET slots = excluded.slots, seen_at = excluded.seen_at
