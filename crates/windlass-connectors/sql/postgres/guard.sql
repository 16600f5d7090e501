-- What guards and refreshes the rows of a relation: whether every row has xmin (a foreign table has none, nor need
-- another storage than the heap have it, and a partitioned table has what its partitions have), a column that an
-- UPDATE may set to its own value, preferably outside the primary key, and the columns of types without a binary
-- form.
-- Lock: none. Index: the catalog's own.
WITH RECURSIVE family AS (
    SELECT $1::oid AS member
    UNION
    SELECT inhrelid FROM family JOIN pg_inherits ON inhparent = member
), attributes AS (
    SELECT attnum, attname::text AS name, atttypid, attidentity, attgenerated
    FROM pg_attribute
    WHERE attrelid = $1::oid AND attnum > 0 AND NOT attisdropped
)
SELECT NOT EXISTS (
        SELECT 1 FROM family
        JOIN pg_class ON pg_class.oid = member
        LEFT JOIN pg_am ON pg_am.oid = relam
        WHERE relkind NOT IN ('r', 'p', 'm') OR relkind <> 'p' AND amname <> 'heap'
    ), (
        SELECT name FROM attributes
        WHERE attidentity <> 'a' AND attgenerated = ''
        ORDER BY EXISTS (
            SELECT 1 FROM pg_index
            WHERE indrelid = $1::oid AND indisprimary AND attnum = ANY (indkey)
        ), attnum
        LIMIT 1
    ), ARRAY (
        SELECT name FROM attributes
        JOIN pg_type ON pg_type.oid = atttypid
        LEFT JOIN pg_type AS element ON element.oid = pg_type.typelem AND pg_type.typlen = -1
        WHERE pg_type.typsend = 0 OR element.typsend = 0
    )
