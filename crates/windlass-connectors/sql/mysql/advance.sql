-- The first statement of every commit: the compare-and-set on the ledger. No row means that the
-- lease is lost, or that this very commit has happened already; either way nothing may follow.
--
-- The last condition stands for the architecture's comparison with the old cursor: every commit
-- adds one, so it changes whenever the cursor does, and also when held items are committed while
-- the cursor stays where it is.
--
-- Lock: the one row, until the end of the transaction. Index: the primary key.
UPDATE windlass_ledger SET
    `cursor` = ?,
    commits = commits + 1,
    `read` = `read` + ?,
    processed = processed + ?,
    skipped = skipped + ?,
    dead = dead + ?,
    conflicts = conflicts + ?,
    updated_at = CAST(UNIX_TIMESTAMP(NOW(3)) * 1000 AS SIGNED)
WHERE job_id = ? AND chunk = ? AND epoch = ? AND nonce = ? AND commits = ?
