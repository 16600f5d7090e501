-- The generated columns of a table. MariaDB ignores a value that an UPDATE of joined tables gives them.
-- Lock: none. Index: the catalog's own.
SELECT column_name
FROM information_schema.columns
WHERE table_schema = ? AND table_name = ? AND COALESCE(generation_expression, '') <> ''
