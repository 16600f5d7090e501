-- Reads the status and lease of a segment, to distinguish a repeated call from one whose lease is
-- lost.
-- Lock: none.
-- Index: the primary key.
SELECT status, epoch, nonce FROM windlass_segments WHERE job_id = $1 AND number = $2
