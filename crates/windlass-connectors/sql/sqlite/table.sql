-- A table or view by its name and optionally its schema: its kind, whether it has no rowid, whether a trigger could
-- make an UPDATE skip a row, and whether it is strict.
-- Lock: none. Index: none, the schema is in memory.
SELECT schema, name, type, wr, EXISTS (
    SELECT 1 FROM sqlite_schema WHERE type = 'trigger' AND tbl_name = ?2 COLLATE NOCASE
), strict
FROM pragma_table_list
WHERE name = ?2 COLLATE NOCASE AND (?1 IS NULL OR schema = ?1 COLLATE NOCASE)
ORDER BY schema <> 'temp', schema <> 'main'
LIMIT 1
