-- The tables with rows of their own, for `init`: no views.
-- Lock: none. Index: the catalog's own.
SELECT table_name FROM information_schema.tables
WHERE table_schema = DATABASE() AND table_type = 'BASE TABLE' LIMIT 10000
