-- Creates the table of applied migrations.
-- Lock: none (with the dialect `postgres` the migration lock is held).
-- Index: none.
CREATE TABLE IF NOT EXISTS windlass_migrations (
    number      bigint PRIMARY KEY,
    name        text NOT NULL,
    applied_at  timestamptz NOT NULL DEFAULT clock_timestamp()
)
