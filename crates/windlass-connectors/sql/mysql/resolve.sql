-- Forgets held items that came to an end.
--
-- Lock: the rows; the chunk's ledger row is locked before, so nobody else is here.
-- Index: the primary key.
DELETE deferred FROM JSON_TABLE(?, '$[*]' COLUMNS (
    k LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$' ERROR ON ERROR
)) AS settled
STRAIGHT_JOIN windlass_deferred AS deferred ON deferred.item_key = settled.k
WHERE deferred.job_id = ? AND deferred.chunk = ?
