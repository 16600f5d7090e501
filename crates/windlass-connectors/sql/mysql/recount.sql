-- Adds the counts that only the effect knows: affected rows, version conflicts.
--
-- Lock: the row, locked by the first statement of the transaction. Index: the primary key.
UPDATE windlass_ledger SET
    `read` = `read` + ?,
    processed = processed + ?,
    skipped = skipped + ?,
    dead = dead + ?,
    conflicts = conflicts + ?
WHERE job_id = ? AND chunk = ?
