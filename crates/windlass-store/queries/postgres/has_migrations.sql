-- Checks whether the table of migrations exists.
-- Lock: none.
-- Index: that of the catalog.
SELECT to_regclass('windlass_migrations') IS NOT NULL AS made
