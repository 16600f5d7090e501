-- Where a chunk is, to tell a repeated call from one that comes too late.
-- Lock: none. Index: the primary key.
SELECT status, epoch, nonce, lost FROM windlass_chunks WHERE job_id = $1 AND number = $2
