-- The columns of a relation's indexes that can serve an ordered walk: valid btrees without a
-- condition. A deferred unique constraint counts as unique: every committed state satisfies it. A column is usable when it is plain, of its own collation and operators, and sorted
-- as ORDER BY sorts, or exactly the other way round.
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
