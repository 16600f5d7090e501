-- Lists the completed chunks of a job that took longest since their first lease, slowest first.
-- Lock: none.
-- Index: the primary key.
SELECT job_id, number, segment, status, epoch, key_set, items, cursor, read, processed, skipped,
    dead, conflicts, marked, attempts, losses, worker, started_at, finished_at, error
FROM windlass_chunks
WHERE job_id = $1 AND status = 'COMPLETED' AND started_at IS NOT NULL
ORDER BY finished_at - started_at DESC, number
LIMIT $2
