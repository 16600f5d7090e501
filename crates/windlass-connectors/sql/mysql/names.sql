-- The tables and views a user can name, for a message that proposes the right one.
-- Lock: none. Index: the catalog's own.
SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() LIMIT 10000
