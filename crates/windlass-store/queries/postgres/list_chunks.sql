-- Lists the chunks of a job in order of their numbers.
-- Lock: none.
-- Index: the primary key.
SELECT job_id, number, segment, status, epoch, key_set, items, cursor, read, processed, skipped,
    dead, conflicts, marked, attempts, losses, worker, started_at, finished_at, error
FROM windlass_chunks
WHERE job_id = $1 AND ($2::text IS NULL OR status = $2) AND ($3::bigint IS NULL OR number > $3)
ORDER BY number
LIMIT $4
