-- A table or view by its name and its database (by default that of the connection): its kind, its engine and an
-- estimate of its rows. Names are case-sensitive if the server's file system is.
-- Lock: none. Index: the catalog's own.
SELECT table_schema, table_name, table_type, COALESCE(engine, ''), COALESCE(table_rows, 0)
FROM information_schema.tables
WHERE table_schema = COALESCE(?, DATABASE()) AND table_name = ?
    AND (@@lower_case_table_names <> 0 OR CAST(table_name AS BINARY) = CAST(? AS BINARY))
