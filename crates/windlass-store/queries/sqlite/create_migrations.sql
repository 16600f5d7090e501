-- Creates the table of applied migrations.
-- Lock: the write transaction.
-- Index: none.
CREATE TABLE IF NOT EXISTS windlass_migrations (
    number      INTEGER PRIMARY KEY,
    name        TEXT NOT NULL,
    applied_at  INTEGER NOT NULL
) STRICT
