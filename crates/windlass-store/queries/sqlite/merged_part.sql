-- Reads the merged result of a job without its content, which may be large.
-- Lock: none (reads a snapshot).
-- Index: the primary key.
SELECT chunk, epoch, nonce, name, rows, bytes, sha256, content_hash, NULL AS content
FROM windlass_parts
WHERE job_id = ?1 AND chunk = ?2
