-- The tables with rows of their own, for `init`: no views, no foreign tables, and of a partitioned table only itself.
-- Lock: none. Index: the catalog's own.
SELECT CASE WHEN pg_table_is_visible(pg_class.oid) THEN relname::text
    ELSE nspname || '.' || relname END
FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace
WHERE relkind IN ('r', 'p') AND NOT relispartition
    AND nspname NOT IN ('pg_catalog', 'information_schema') AND nspname NOT LIKE 'pg\_%'
LIMIT 10000
