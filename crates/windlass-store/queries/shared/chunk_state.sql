-- Reads the status and lease of a chunk, to distinguish a repeated call from one whose lease is
-- lost.
-- Lock: none.
-- Index: the primary key.
SELECT status, epoch, nonce, lost FROM windlass_chunks WHERE job_id = $1 AND number = $2
