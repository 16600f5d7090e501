-- Records a migration before it is applied. At SERIALIZABLE this waits for a process that applies the same one,
-- and fails when that has committed.
-- Lock: the new row (with the dialect `postgres` the migration lock is held).
-- Index: the primary key.
INSERT INTO windlass_migrations (number, name) VALUES ($1, $2)
ON CONFLICT (number) DO NOTHING
