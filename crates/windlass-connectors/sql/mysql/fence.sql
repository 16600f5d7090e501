-- Raises the ledger rows of several chunks to the epochs of their leases, and creates the missing ones. A row
-- with a higher epoch, or with the same epoch and another nonce (a lease that the store issued before it was
-- restored), does not change. Fencing again with the same epoch and nonce changes nothing.
--
-- ON DUPLICATE KEY UPDATE locks an existing row exclusively at once. INSERT IGNORE would take a shared lock,
-- and two transactions that upgrade it would deadlock.
--
-- The assignments run from top to bottom, so the epoch, on which the others depend, comes last.
--
-- Lock: the rows in the given order, which is key order, so that two processes cannot deadlock.
-- Index: the primary key.
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
    -- A lost lease without a commit counts as a stall. Any commit resets the count.
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
