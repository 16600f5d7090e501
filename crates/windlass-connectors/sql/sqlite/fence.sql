-- Raises one ledger row to the epoch the chunk was claimed at, creates it when it is missing, and
-- reads it. A row at a higher epoch, or at ours with another nonce (a claim of the same store
-- before it was restored), is left alone and does not come back. Fencing again with the same epoch and
-- nonce, as after a commit whose answer was lost, changes nothing.
--
-- Lock: the file's one writer. Index: the primary key.
INSERT INTO windlass_ledger (job_id, chunk, epoch, stalls, nonce, updated_at)
VALUES (?1, ?2, ?3, ?4, ?5, CAST(unixepoch('subsec') * 1000 AS INTEGER))
ON CONFLICT (job_id, chunk) DO UPDATE SET
    epoch = excluded.epoch,
    nonce = excluded.nonce,
    -- A claim that was lost and saw no commit is a stall; any commit since ends the series.
    stalls = CASE
        WHEN windlass_ledger.epoch = excluded.epoch THEN windlass_ledger.stalls
        WHEN windlass_ledger.commits > windlass_ledger.opened_at_commits THEN 0
        ELSE windlass_ledger.stalls + excluded.stalls
    END,
    opened_at_commits = CASE
        WHEN windlass_ledger.epoch = excluded.epoch THEN windlass_ledger.opened_at_commits
        ELSE windlass_ledger.commits
    END,
    updated_at = excluded.updated_at
WHERE windlass_ledger.epoch < excluded.epoch
    OR windlass_ledger.epoch = excluded.epoch AND windlass_ledger.nonce = excluded.nonce
RETURNING epoch, commits, cursor, read, processed, skipped, dead, conflicts, stalls, nonce
