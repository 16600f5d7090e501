-- Renews a valid lease of a chunk, never past its deadline, and stores the progress if it is given.
-- Lock: the write transaction.
-- Index: the primary keys.
UPDATE windlass_chunks
SET lease_until = min(
        CAST(unixepoch('subsec') * 1000 AS INTEGER)
            + (SELECT min(j.lease_ms, coalesce(?11, j.lease_ms)) FROM windlass_jobs j WHERE j.id = ?1),
        deadline
    ),
    cursor = coalesce(?4, cursor),
    read = coalesce(?5, read),
    processed = coalesce(?6, processed),
    skipped = coalesce(?7, skipped),
    dead = coalesce(?8, dead),
    conflicts = coalesce(?9, conflicts),
    marked = coalesce(?12, marked)
WHERE job_id = ?1 AND number = ?2 AND epoch = ?3 AND nonce = ?10 AND status = 'PROCESSING'
