-- Counts the blocks of the table $1. No row if it has none of its own (a view, a foreign table), if it has children or
-- partitions, or if it is not stored as a heap.
-- Lock: none.
-- Index: the catalog's.
SELECT pg_relation_size(c.oid) / current_setting('block_size')::bigint
FROM pg_class c JOIN pg_am a ON a.oid = c.relam
WHERE c.oid = to_regclass($1)
    AND c.relkind IN ('r', 'm')
    AND a.amname = 'heap'
    AND NOT EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = c.oid)
