-- A table or view by its schema (or any) and name: what it is, and whether it has no rowid.
-- Lock: none. Index: none, the schema is in memory.
SELECT schema, name, type, wr FROM pragma_table_list
WHERE name = ?2 COLLATE NOCASE AND (?1 IS NULL OR schema = ?1 COLLATE NOCASE)
ORDER BY schema <> 'temp', schema <> 'main'
LIMIT 1
