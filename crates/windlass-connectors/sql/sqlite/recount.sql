-- Adds what only the effect could know to the counts: rows affected, version conflicts.
--
-- Lock: the file's one writer. Index: the primary key.
UPDATE windlass_ledger SET
    read = read + ?3,
    processed = processed + ?4,
    skipped = skipped + ?5,
    dead = dead + ?6,
    conflicts = conflicts + ?7
WHERE job_id = ?1 AND chunk = ?2
