-- Reads the status of the job of a valid lease; a lost lease has no row.
-- Lock: none; the write transaction in a heartbeat.
-- Index: the primary keys.
SELECT j.status
FROM windlass_chunks c JOIN windlass_jobs j ON j.id = c.job_id
WHERE c.job_id = ?1 AND c.number = ?2 AND c.epoch = ?3 AND c.nonce = ?4 AND c.status = 'PROCESSING'
