-- The tables and views a user can name, for a message that proposes the right one.
-- Lock: none. Index: none, the schema is in memory.
SELECT name FROM pragma_table_list
WHERE type IN ('table', 'view', 'virtual') AND name NOT LIKE 'sqlite\_%' ESCAPE '\'
