-- Counts the chunks of a job that are in progress.
-- Lock: the write transaction.
-- Index: windlass_chunks_processing.
SELECT count(*) AS busy
FROM windlass_chunks INDEXED BY windlass_chunks_processing
WHERE job_id = ?1 AND status = 'PROCESSING'
