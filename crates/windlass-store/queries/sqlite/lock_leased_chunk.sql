-- Checks that the lease of a chunk is valid, before its dead letters are written.
-- Lock: the write transaction.
-- Index: the primary keys.
SELECT j.redrive, j.job_type, j.submitter
FROM windlass_chunks c JOIN windlass_jobs j ON j.id = c.job_id
WHERE c.job_id = ?1 AND c.number = ?2 AND c.epoch = ?3 AND c.nonce = ?4 AND c.status = 'PROCESSING'
