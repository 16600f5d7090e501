-- Lists the next waiting chunks of a job.
-- Lock: the write transaction.
-- Index: windlass_chunks_pending.
SELECT number, lost
FROM windlass_chunks INDEXED BY windlass_chunks_pending
WHERE job_id = ?1 AND status = 'PENDING' AND available_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER)
ORDER BY number
LIMIT ?2
