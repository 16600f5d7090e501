-- Remembers a migration. Lock: under the migration lock. Index: the primary key.
INSERT INTO windlass_migrations (number, name) VALUES ($1, $2)
