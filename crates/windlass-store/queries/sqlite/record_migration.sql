-- Records an applied migration.
-- Lock: the write transaction.
-- Index: the primary key.
INSERT INTO windlass_migrations (number, name, applied_at)
VALUES (?1, ?2, CAST(unixepoch('subsec') * 1000 AS INTEGER))
