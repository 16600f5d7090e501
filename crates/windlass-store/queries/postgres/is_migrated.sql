-- Whether the table of migrations exists. Lock: none. Index: the catalog's own.
SELECT to_regclass('windlass_migrations') IS NOT NULL AS made
