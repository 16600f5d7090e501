-- A relation by its quoted name: its oid and its kind; no row when there is none.
-- Lock: none. Index: the catalog's own.
SELECT oid::bigint, relkind::text FROM pg_class WHERE oid = to_regclass($1)
