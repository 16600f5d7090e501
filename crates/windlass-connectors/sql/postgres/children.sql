-- The tables that inherit from a relation, directly or indirectly. Without partitions, since a unique index of a
-- partitioned table covers all of them.
-- Lock: none. Index: the catalog's own.
WITH RECURSIVE family AS (
    SELECT $1::oid AS member
    UNION
    SELECT inhrelid FROM family
    JOIN pg_inherits ON inhparent = member
    JOIN pg_class ON pg_class.oid = inhparent AND relkind <> 'p'
)
SELECT member::regclass::text FROM family WHERE member <> $1::oid ORDER BY 1
