-- Raises the ledger rows of several chunks to the epochs of their leases, creates the missing ones, and returns them.
-- A row with a higher epoch, or with the same epoch and another nonce (a lease that the store issued before it was
-- restored), does not change and is not returned. Fencing again with the same epoch and nonce changes
-- nothing.
--
-- Lock: the rows in key order, so that two processes cannot deadlock.
-- Index: the primary key.
INSERT INTO windlass_ledger AS ledger (job_id, chunk, epoch, stalls, nonce)
SELECT asked.job_id, asked.chunk, asked.epoch, asked.lost::integer, asked.nonce
FROM unnest($1, $2, $3, $4, $5) AS asked(job_id, chunk, epoch, lost, nonce)
ORDER BY asked.job_id, asked.chunk
ON CONFLICT (job_id, chunk) DO UPDATE SET
    epoch = excluded.epoch,
    nonce = excluded.nonce,
    -- A lost lease without a commit counts as a stall. Any commit resets the count.
    stalls = CASE
        WHEN ledger.epoch = excluded.epoch THEN ledger.stalls
        WHEN ledger.commits > ledger.opened_at_commits THEN 0
        ELSE ledger.stalls + excluded.stalls
    END,
    opened_at_commits = CASE
        WHEN ledger.epoch = excluded.epoch THEN ledger.opened_at_commits
        ELSE ledger.commits
    END,
    updated_at = clock_timestamp()
WHERE ledger.epoch < excluded.epoch
    OR ledger.epoch = excluded.epoch AND ledger.nonce = excluded.nonce
RETURNING job_id, chunk, epoch, commits, cursor, read, processed, skipped, dead, conflicts, stalls,
    nonce
