-- Deletes deferred items that need no further try.
--
-- Lock: the rows. The chunk's ledger row is locked before, so no other transaction changes them.
-- Index: the primary key.
DELETE deferred FROM JSON_TABLE(?, '$[*]' COLUMNS (
    k LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$' ERROR ON ERROR
)) AS settled
STRAIGHT_JOIN windlass_deferred AS deferred ON deferred.item_key = settled.k
WHERE deferred.job_id = ? AND deferred.chunk = ?
