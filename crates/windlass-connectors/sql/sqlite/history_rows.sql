-- The ledger rows of a job in order of chunk numbers, after one. Lock: none. Index: the primary key.
SELECT epoch, commits, cursor, read, processed, skipped, dead, conflicts, stalls, nonce, chunk
FROM windlass_ledger
WHERE job_id = ?1 AND chunk > ?2
ORDER BY chunk
LIMIT ?3
