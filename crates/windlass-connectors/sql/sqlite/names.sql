-- The tables and views that a user can name, for suggestions in messages.
-- Lock: none. Index: none, the schema is in memory.
SELECT name FROM pragma_table_list
WHERE type IN ('table', 'view', 'virtual') AND name NOT LIKE 'sqlite\_%' ESCAPE '\'
