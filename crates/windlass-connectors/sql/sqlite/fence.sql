-- Raises one ledger row to the epoch of its lease, creates it if it is missing, and returns it. A row with a higher
-- epoch, or with the same epoch and another nonce (a lease that the store issued before it was restored), does not
-- change and is not returned. Fencing again with the same epoch and nonce changes nothing.
--
-- Lock: the write lock of the file. Index: the primary key.
INSERT INTO windlass_ledger (job_id, chunk, epoch, stalls, nonce, updated_at)
VALUES (?1, ?2, ?3, ?4, ?5, CAST(unixepoch('subsec') * 1000 AS INTEGER))
ON CONFLICT (job_id, chunk) DO UPDATE SET
    epoch = excluded.epoch,
    nonce = excluded.nonce,
    -- A lost lease without a commit counts as a stall. Any commit resets the count.
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
