-- The columns of a table, with generated ones and without hidden ones.
-- Lock: none. Index: none, the schema is in memory.
SELECT name, type, "notnull", pk FROM pragma_table_xinfo(?1, ?2) WHERE hidden <> 1 ORDER BY cid
