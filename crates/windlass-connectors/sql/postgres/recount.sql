-- Adds the counts that only the effect knows: affected rows, version conflicts.
--
-- Lock: the row, locked by the first statement of the transaction. Index: the primary key.
UPDATE windlass_ledger SET
    read = read + $3,
    processed = processed + $4,
    skipped = skipped + $5,
    dead = dead + $6,
    conflicts = conflicts + $7
WHERE job_id = $1 AND chunk = $2
