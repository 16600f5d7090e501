-- A relation by its quoted name: its oid, its kind, and whether an UPDATE affects every row that its condition
-- matches (no trigger, rule, row security or partition). No row if it does not exist.
-- Lock: none. Index: the catalog's own.
SELECT oid::bigint, relkind::text,
    relkind = 'r' AND NOT relhassubclass AND NOT relhasrules AND NOT relrowsecurity
        AND NOT EXISTS (
            SELECT 1 FROM pg_trigger WHERE tgrelid = pg_class.oid AND NOT tgisinternal
        )
FROM pg_class WHERE oid = to_regclass($1)
