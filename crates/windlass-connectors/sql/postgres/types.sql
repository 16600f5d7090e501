-- The names and base types of types, for the columns of a query.
-- Lock: none. Index: the catalog's own.
SELECT oid::bigint, format_type(oid, -1),
    (CASE typtype WHEN 'd' THEN typbasetype ELSE oid END)::bigint
FROM pg_type WHERE oid = ANY($1::oid[])
