-- The first statement of every commit: the compare-and-set on the ledger row. No row means that the lease
-- is lost, or that this commit was applied before. In both cases the transaction must be rolled back.
--
-- `commits = ?4` is used instead of a comparison with the old cursor: every commit adds one, so it changes
-- whenever the cursor does, and also when deferred items are committed without moving the cursor.
--
-- Lock: the write lock of the file. Index: the primary key.
UPDATE windlass_ledger SET
    cursor = ?5,
    commits = commits + 1,
    read = read + ?6,
    processed = processed + ?7,
    skipped = skipped + ?8,
    dead = dead + ?9,
    conflicts = conflicts + ?10,
    updated_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE job_id = ?1 AND chunk = ?2 AND epoch = ?3 AND nonce = ?11 AND commits = ?4
RETURNING epoch, commits, cursor, read, processed, skipped, dead, conflicts, stalls, nonce
