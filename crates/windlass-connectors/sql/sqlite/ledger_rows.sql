-- The ledger rows of a job's chunks in order after a chunk, each with the number of deferred items, of dead items,
-- of emitted rows as counted by the commits, and of emitted rows in the table. For the audit.
--
-- Lock: none, on a snapshot. Index: the primary keys of the three tables.
SELECT epoch, commits, cursor, read, processed, skipped, dead, conflicts, stalls, nonce,
    (SELECT count(*) FROM windlass_deferred AS deferred
        WHERE deferred.job_id = ledger.job_id AND deferred.chunk = ledger.chunk AND deferred.state <> 'dead'),
    (SELECT count(*) FROM windlass_deferred AS deferred
        WHERE deferred.job_id = ledger.job_id AND deferred.chunk = ledger.chunk AND deferred.state = 'dead'),
    emitted,
    (SELECT count(*) FROM windlass_emitted AS rows_there
        WHERE rows_there.job_id = ledger.job_id AND rows_there.chunk = ledger.chunk),
    chunk
FROM windlass_ledger AS ledger
WHERE job_id = ?1 AND chunk > ?2
ORDER BY chunk
LIMIT ?3
