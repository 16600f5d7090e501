-- The columns of a table's indexes that are not partial. A negative column is an expression or the
-- rowid.
-- Lock: none. Index: none, the schema is in memory.
SELECT list.name, list."unique", list.origin, info.cid, info.name, info."desc", info.coll
FROM pragma_index_list(?1, ?2) AS list, pragma_index_xinfo(list.name, ?2) AS info
WHERE NOT list.partial AND info.key
ORDER BY list.seq, info.seqno
