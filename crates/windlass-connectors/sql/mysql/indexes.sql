-- The columns of a table's indexes that can serve an ordered walk: B-trees that the optimizer looks
-- at. A column is usable when it is plain and whole. Each of the comments is read by one kind of
-- server alone, which has that column.
-- Lock: none. Index: the catalog's own.
SELECT index_name, non_unique = 0, COALESCE(column_name, ''),
    column_name IS NOT NULL AND sub_part IS NULL AND collation IS NOT NULL,
    COALESCE(collation = 'D', 0)
FROM information_schema.statistics
WHERE table_schema = ? AND table_name = ? AND index_type = 'BTREE'
    /*M! AND ignored = 'NO' */ /*!80000 AND is_visible = 'YES' */
ORDER BY index_name <> 'PRIMARY', index_name, seq_in_index
