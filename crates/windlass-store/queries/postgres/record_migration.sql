-- Records an applied migration.
-- Lock: none (the migration lock is held).
-- Index: the primary key.
INSERT INTO windlass_migrations (number, name) VALUES ($1, $2)
