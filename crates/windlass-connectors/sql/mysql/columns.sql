-- The columns of a table. MariaDB's JSON is text with a check constraint. The comment that only MariaDB
-- executes looks for that constraint.
-- Lock: none. Index: the catalog's own.
SELECT column_name, data_type, column_type, COALESCE(collation_name, ''),
    is_nullable = 'YES',
    data_type = 'json' /*M! OR EXISTS (
        SELECT 1 FROM information_schema.check_constraints AS checks
        WHERE checks.constraint_schema = columns.table_schema
            AND checks.table_name = columns.table_name
            AND checks.check_clause = CONCAT('json_valid(`', columns.column_name, '`)')
    ) */
FROM information_schema.columns AS columns
WHERE table_schema = ? AND table_name = ?
ORDER BY ordinal_position
