-- The tables and views that a user can name, for suggestions in messages.
-- Lock: none. Index: the catalog's own.
SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() LIMIT 10000
