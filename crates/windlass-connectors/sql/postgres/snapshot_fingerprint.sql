-- Identifies the snapshot of the transaction: when its server was started, and which transactions it sees. Then the file
-- of the source's table $1 as the snapshot shows it, and its file now, whatever the snapshot shows: they differ once the
-- table was rewritten. Empty if $1 is NULL or has no file of its own (a view, a partitioned or foreign table).
-- `windlass.in_transaction`: see advance.sql.
-- Lock: none; readers have locked the table.
-- Index: the catalog's.
SELECT
    concat_ws('/', extract(epoch FROM pg_postmaster_start_time()), pg_current_snapshot()),
    coalesce((SELECT c.relfilenode::text FROM pg_class c WHERE c.oid = to_regclass($1) AND c.relkind IN ('r', 'm')), ''),
    coalesce(pg_relation_filenode(to_regclass($1))::text, '')
WHERE current_setting('windlass.in_transaction', true) = 'on'
