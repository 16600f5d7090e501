-- The table that remembers which migrations were applied. Lock: under the migration lock.
-- Index: none.
CREATE TABLE IF NOT EXISTS windlass_migrations (
    number      bigint PRIMARY KEY,
    name        text NOT NULL,
    applied_at  timestamptz NOT NULL DEFAULT clock_timestamp()
)
