-- The columns of a relation. The type of a domain's column is the one that the domain is made of, however
-- many domains lie in between: values are compared and read as that. The type is written without its
-- length: a cast to `varchar(5)` would cut a value that an assignment refuses. Only a decimal has its
-- digits, which exports keep; casts leave them out. A column may be null where a table that inherits from
-- this one lets it be, and where only its domain is NOT NULL: a subquery without rows puts nulls into such
-- a column.
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
