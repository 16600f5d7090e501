-- The columns of a relation. The type of a domain's column is the one that the domain is made of, however
-- many domains lie in between: values are compared and read as that. The type is written without its
-- length: a cast to `varchar(5)` would cut a value that an assignment refuses. Only a decimal has its
-- digits, which exports keep; casts leave them out.
-- Lock: none. Index: the catalog's own.
WITH RECURSIVE resolved (attnum, attname, type, modifier, not_null) AS (
    SELECT attnum, attname, atttypid, atttypmod, attnotnull
    FROM pg_attribute
    WHERE attrelid = $1::oid AND attnum > 0 AND NOT attisdropped
    UNION ALL
    SELECT attnum, attname, typbasetype, typtypmod, not_null OR typnotnull
    FROM resolved JOIN pg_type ON pg_type.oid = type
    WHERE typtype = 'd'
)
SELECT attname::text, format_type(type, CASE type WHEN 'numeric'::regtype THEN modifier ELSE -1 END),
    type::bigint, NOT not_null
FROM resolved JOIN pg_type ON pg_type.oid = type
WHERE typtype <> 'd'
ORDER BY attnum
