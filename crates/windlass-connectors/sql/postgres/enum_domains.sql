-- The columns that are domains over enums, for which PostgreSQL has no comparison operators.
-- Lock: none. Index: the catalog's own.
SELECT attname::text, format_type(atttypid, -1)
FROM pg_attribute
    JOIN pg_type AS domain ON domain.oid = atttypid AND domain.typtype = 'd'
    JOIN pg_type AS base ON base.oid = domain.typbasetype AND base.typtype = 'e'
WHERE attrelid = $1::oid AND attname = ANY($2::text[])
LIMIT 1
