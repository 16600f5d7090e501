-- Lists chunks of cancelled jobs that were ever leased, except those that another process has
-- leased to cancel and whose lease is valid.
-- Lock: the write transaction.
-- Index: windlass_jobs_cancelled; the primary key of the chunks.
SELECT c.job_id, c.number, c.lost
FROM windlass_jobs j INDEXED BY windlass_jobs_cancelled
    CROSS JOIN windlass_chunks c ON c.job_id = j.id
WHERE j.status = 'CANCELLED'
    AND j.finished_at IS NULL
    AND j.connection IN (SELECT value FROM json_each(?1))
    AND (?2 IS NULL OR j.id = ?2)
    AND c.status IN ('PENDING', 'PROCESSING')
    AND c.epoch > 0
    AND NOT (c.ending = 1 AND c.lease_until > CAST(unixepoch('subsec') * 1000 AS INTEGER))
ORDER BY j.id, c.number
LIMIT ?3
