-- A table or view by its database (or the connection's own) and name: what it is, what keeps it, and
-- about how many rows it has. Names are told apart by case where the server's files are.
-- Lock: none. Index: the catalog's own.
SELECT table_schema, table_name, table_type, COALESCE(engine, ''), COALESCE(table_rows, 0)
FROM information_schema.tables
WHERE table_schema = COALESCE(?, DATABASE()) AND table_name = ?
    AND (@@lower_case_table_names <> 0 OR CAST(table_name AS BINARY) = CAST(? AS BINARY))
