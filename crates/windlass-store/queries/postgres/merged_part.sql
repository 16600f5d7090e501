-- Reads the merged result of a job without its content, which may be large.
-- Lock: none.
-- Index: the primary key.
SELECT chunk, epoch, nonce, name, rows, bytes, sha256, content_hash, NULL::bytea AS content
FROM windlass_parts
WHERE job_id = $1 AND chunk = $2
