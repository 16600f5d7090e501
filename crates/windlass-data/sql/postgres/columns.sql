-- The columns of a relation. The type is written without its length: a cast to `varchar(5)` would
-- cut a value that an assignment refuses. Only a decimal has its digits, which exports keep; casts
-- leave them out.
-- Lock: none. Index: the catalog's own.
SELECT attname::text, format_type(atttypid, CASE atttypid WHEN 'numeric'::regtype THEN atttypmod ELSE -1 END),
    (CASE typtype WHEN 'd' THEN typbasetype ELSE atttypid END)::bigint,
    NOT (attnotnull OR typnotnull)
FROM pg_attribute JOIN pg_type ON pg_type.oid = atttypid
WHERE attrelid = $1::oid AND attnum > 0 AND NOT attisdropped
ORDER BY attnum
