-- Raises the ledger rows of several chunks to the epochs they were claimed at, creates what is
-- missing, and reads them. A row at a higher epoch, or at ours with another nonce (a
-- claim of the same store before it was restored), is left alone and does not come back. Fencing again
-- with the same epoch and nonce, as after a commit whose answer was lost, changes nothing.
--
-- Lock: the rows, in key order, so that two processes never wait for each other in a circle.
-- Index: the primary key.
INSERT INTO windlass_ledger AS ledger (job_id, chunk, epoch, stalls, nonce)
SELECT asked.job_id, asked.chunk, asked.epoch, asked.lost::integer, asked.nonce
FROM unnest($1, $2, $3, $4, $5) AS asked(job_id, chunk, epoch, lost, nonce)
ORDER BY asked.job_id, asked.chunk
ON CONFLICT (job_id, chunk) DO UPDATE SET
    epoch = excluded.epoch,
    nonce = excluded.nonce,
    -- A claim that was lost and saw no commit is a stall; any commit since ends the series.
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
