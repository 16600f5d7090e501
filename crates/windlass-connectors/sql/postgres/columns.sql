-- The columns of a relation. The type of a domain is its base type, by which values are compared and read. Types
-- have no length, since a cast to `varchar(5)` would truncate a value that an assignment refuses. Only a decimal
-- has its precision, for exports; casts omit it. A column is nullable if it is in an inheriting table, or if only
-- its domain is NOT NULL, since a subquery without rows gives nulls in such a column.
-- Lock: none. Index: the catalog's own.
WITH RECURSIVE family AS (
    SELECT $1::oid AS member
    UNION
    SELECT inhrelid FROM family
    JOIN pg_inherits ON inhparent = member
    JOIN pg_class ON pg_class.oid = inhparent AND relkind <> 'p'
), resolved (attnum, attname, type, modifier) AS (
    SELECT attnum, attname, atttypid, atttypmod
    FROM pg_attribute
    WHERE attrelid = $1::oid AND attnum > 0 AND NOT attisdropped
    UNION ALL
    SELECT attnum, attname, typbasetype, typtypmod
    FROM resolved JOIN pg_type ON pg_type.oid = type
    WHERE typtype = 'd'
)
SELECT attname::text, format_type(type, CASE type WHEN 'numeric'::regtype THEN modifier ELSE -1 END),
    type::bigint,
    EXISTS (
        SELECT 1 FROM family
        JOIN pg_attribute AS inherited ON inherited.attrelid = member
            AND inherited.attname = resolved.attname
        WHERE NOT inherited.attnotnull
    )
FROM resolved JOIN pg_type ON pg_type.oid = type
WHERE typtype <> 'd'
ORDER BY attnum
