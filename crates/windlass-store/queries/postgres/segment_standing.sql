-- Where a segment is, to tell a repeated call from one that comes too late.
-- Lock: none. Index: the primary key.
SELECT status, epoch, nonce FROM windlass_segments WHERE job_id = $1 AND number = $2
