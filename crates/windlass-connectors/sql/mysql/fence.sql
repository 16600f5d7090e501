-- Raises the ledger rows of several chunks to the epochs they were claimed at, and creates what is
-- missing. A row at a higher epoch, or at ours with another nonce (a claim of the same store before it
-- was restored), is left alone. Fencing again with the same epoch and nonce, as after a commit whose
-- answer was lost, changes nothing.
--
-- A row that is there is locked for us at once. INSERT IGNORE would only share it, and two that then
-- want it for themselves would wait for each other.
--
-- The assignments happen from top to bottom, so the epoch, which the others look at, comes last.
--
-- Lock: the rows, in the order they are given, which is that of the keys, so that two processes
-- never wait for each other in a circle. Index: the primary key.
INSERT INTO windlass_ledger (job_id, chunk, epoch, stalls, nonce, updated_at)
SELECT asked.job, asked.number, asked.wanted, asked.lost, asked.nonce,
    CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)
FROM JSON_TABLE(?, '$[*]' COLUMNS (
    place FOR ORDINALITY,
    job CHAR(36) CHARACTER SET ascii COLLATE ascii_bin PATH '$[0]' ERROR ON ERROR,
    number BIGINT PATH '$[1]' ERROR ON ERROR,
    wanted BIGINT PATH '$[2]' ERROR ON ERROR,
    lost INT PATH '$[3]' ERROR ON ERROR,
    nonce BIGINT PATH '$[4]' ERROR ON ERROR
)) AS asked
ORDER BY asked.place
ON DUPLICATE KEY UPDATE
    -- A claim that was lost and saw no commit is a stall; any commit since ends the series.
    stalls = CASE
        WHEN windlass_ledger.epoch >= VALUES(epoch) THEN windlass_ledger.stalls
        WHEN windlass_ledger.commits > windlass_ledger.opened_at_commits THEN 0
        ELSE windlass_ledger.stalls + VALUES(stalls)
    END,
    opened_at_commits = CASE
        WHEN windlass_ledger.epoch >= VALUES(epoch) THEN windlass_ledger.opened_at_commits
        ELSE windlass_ledger.commits
    END,
    nonce = CASE
        WHEN windlass_ledger.epoch >= VALUES(epoch) THEN windlass_ledger.nonce
        ELSE VALUES(nonce)
    END,
    updated_at = VALUES(updated_at),
    epoch = GREATEST(windlass_ledger.epoch, VALUES(epoch))
