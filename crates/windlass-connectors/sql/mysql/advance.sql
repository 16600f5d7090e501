-- The first statement of every commit: the compare-and-set on the ledger row. No row means that the lease
-- is lost, or that this commit was applied before. In both cases the transaction must be rolled back.
--
-- The last condition compares `commits` instead of the old cursor: every commit adds one, so it changes
-- whenever the cursor does, and also when deferred items are committed without moving the cursor.
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
