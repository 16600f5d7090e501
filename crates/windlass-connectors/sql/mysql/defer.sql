-- Stores deferred items. Overwrites the row of an item that is deferred already.
--
-- Lock: the rows. The chunk's ledger row is locked before, so no other transaction changes them.
-- Index: the primary key.
INSERT INTO windlass_deferred
    (job_id, chunk, item_key, long_key, state, attempts, conflicts, error, context, record, due_at)
SELECT ?, ?, deferred.k, deferred.l, deferred.s, deferred.a, deferred.c, deferred.e, deferred.x, deferred.r,
    CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED) + deferred.w
FROM JSON_TABLE(?, '$[*]' COLUMNS (
    k LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$[0]' ERROR ON ERROR,
    s VARCHAR(10) CHARACTER SET ascii COLLATE ascii_bin PATH '$[1]' ERROR ON ERROR,
    a BIGINT PATH '$[2]' ERROR ON ERROR,
    c BIGINT PATH '$[3]' ERROR ON ERROR,
    e LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$[4]' ERROR ON ERROR,
    x LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$[5]' ERROR ON ERROR,
    r LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$[6]' ERROR ON ERROR,
    w BIGINT PATH '$[7]' ERROR ON ERROR,
    l LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin PATH '$[8]' ERROR ON ERROR
)) AS deferred
ON DUPLICATE KEY UPDATE
    state = VALUES(state),
    attempts = VALUES(attempts),
    conflicts = VALUES(conflicts),
    error = VALUES(error),
    context = VALUES(context),
    record = VALUES(record),
    due_at = VALUES(due_at)
