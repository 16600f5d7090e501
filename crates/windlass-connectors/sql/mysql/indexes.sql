-- The columns of a table's indexes that return keys in order: visible B-trees. A column is usable if it is
-- neither an expression nor a prefix. Each of the comments is executed only by the server that has the
-- column.
-- Lock: none. Index: the catalog's own.
SELECT index_name, non_unique = 0, COALESCE(column_name, ''),
    column_name IS NOT NULL AND sub_part IS NULL AND collation IS NOT NULL,
    COALESCE(collation = 'D', 0)
FROM information_schema.statistics
WHERE table_schema = ? AND table_name = ? AND index_type = 'BTREE'
    /*M! AND ignored = 'NO' */ /*!80000 AND is_visible = 'YES' */
ORDER BY index_name <> 'PRIMARY', index_name, seq_in_index
