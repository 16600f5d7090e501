-- Adds what only the effect could know to the counts: rows affected, version conflicts.
--
-- Lock: the row this transaction has locked by its first statement. Index: the primary key.
UPDATE windlass_ledger SET
    `read` = `read` + ?,
    processed = processed + ?,
    skipped = skipped + ?,
    dead = dead + ?,
    conflicts = conflicts + ?
WHERE job_id = ? AND chunk = ?
