-- The tables with rows of their own, for `init`: no views, no virtual tables and none of their shadow tables.
-- Lock: none. Index: none, the schema is in memory.
SELECT name FROM pragma_table_list
WHERE type = 'table' AND schema = 'main' AND name NOT LIKE 'sqlite\_%' ESCAPE '\'
