-- The columns of a relation. The type is written without its length: a cast to `varchar(5)` would
-- cut a value that an assignment refuses. Only a decimal has its digits, which exports keep; casts
-- leave them out. A column may be null where a table that inherits from this one lets it be, and
-- where only its domain is NOT NULL: a subquery without rows puts nulls into such a column.
-- Lock: none. Index: the catalog's own.
WITH RECURSIVE family AS (
    SELECT $1::oid AS member
    UNION
    SELECT inhrelid FROM family
    JOIN pg_inherits ON inhparent = member
    JOIN pg_class ON pg_class.oid = inhparent AND relkind <> 'p'
)
SELECT attname::text, format_type(atttypid, CASE atttypid WHEN 'numeric'::regtype THEN atttypmod ELSE -1 END),
    (CASE typtype WHEN 'd' THEN typbasetype ELSE atttypid END)::bigint,
    EXISTS (
        SELECT 1 FROM family
        JOIN pg_attribute AS inherited ON inherited.attrelid = member
            AND inherited.attname = pg_attribute.attname
        WHERE NOT inherited.attnotnull
    )
FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid
WHERE attrelid = $1::oid AND attnum > 0 AND NOT attisdropped
ORDER BY attnum
