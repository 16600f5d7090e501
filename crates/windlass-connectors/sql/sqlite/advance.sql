-- The first statement of every commit: the compare-and-set on the ledger. No row means that the
-- lease is lost, or that this very commit has happened already; either way nothing may follow.
--
-- `commits = ?4` stands for the architecture's `cursor IS NOT DISTINCT FROM old`: every commit
-- adds one, so it changes whenever the cursor does, and also when held items are committed while
-- the cursor stays where it is.
--
-- Lock: the file's one writer. Index: the primary key.
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
