-- The columns of a relation's indexes that return keys in order: valid B-trees without a condition. A deferred unique
-- constraint counts as unique, since every committed state satisfies it. A column is usable if it is not an
-- expression, has its own collation and operators, and is sorted like ORDER BY or exactly in reverse.
-- Lock: none. Index: the catalog's own.
SELECT indexrelid::bigint, indisunique, indisprimary, attname::text,
    coalesce(
        attnum > 0
        AND opcdefault
        AND (collation_of IN (0, attcollation))
        AND option_of IN (0, 3),
        false
    ),
    option_of = 3
FROM pg_index
JOIN pg_class ON pg_class.oid = indexrelid
JOIN pg_am ON pg_am.oid = relam AND amname = 'btree'
CROSS JOIN LATERAL unnest(indkey::int2[], indclass::oid[], indcollation::oid[], indoption::int2[])
    WITH ORDINALITY AS part(column_of, class_of, collation_of, option_of, place)
LEFT JOIN pg_opclass ON pg_opclass.oid = class_of
LEFT JOIN pg_attribute ON attrelid = indrelid AND attnum = column_of AND column_of > 0
WHERE indrelid = $1::oid AND indisvalid AND indisready AND indpred IS NULL AND place <= indnkeyatts
ORDER BY indisprimary DESC, indexrelid, place
