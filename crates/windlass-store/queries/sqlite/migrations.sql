-- The table that remembers which migrations were applied. Lock: the writer's. Index: none.
CREATE TABLE IF NOT EXISTS windlass_migrations (
    number      INTEGER PRIMARY KEY,
    name        TEXT NOT NULL,
    applied_at  INTEGER NOT NULL
) STRICT
