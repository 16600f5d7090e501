-- A column that an UPDATE may set to its own value, preferably outside the primary key.
-- Lock: none. Index: none, the schema is in memory.
SELECT name FROM pragma_table_xinfo(?1, ?2) WHERE hidden = 0 ORDER BY pk > 0, cid LIMIT 1
