-- Forgets held items that came to an end.
--
-- Lock: the rows; the chunk's ledger row is locked before, so nobody else is here.
-- Index: the primary key.
DELETE held FROM JSON_TABLE(?, '$[*]' COLUMNS (
    k LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$' ERROR ON ERROR
)) AS settled
STRAIGHT_JOIN windlass_held AS held ON held.item_key = settled.k
WHERE held.job_id = ? AND held.chunk = ?
