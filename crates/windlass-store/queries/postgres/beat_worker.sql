-- A process says that it works. Lock: its row. Index: the primary key.
INSERT INTO windlass_workers (name, slots)
VALUES ($1, $2)
ON CONFLICT (name) DO UPDATE SET slots = excluded.slots, seen_at = clock_timestamp()
