-- Lists the next waiting segments of a job.
-- Lock: the write transaction.
-- Index: windlass_segments_pending.
SELECT number
FROM windlass_segments INDEXED BY windlass_segments_pending
WHERE job_id = ?1 AND status = 'PENDING' AND available_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER)
ORDER BY number
LIMIT ?2
