-- Lists the parts of a job in order, after a chunk.
-- Lock: none.
-- Index: the primary key.
SELECT chunk, epoch, nonce, name, rows, bytes, sha256, content_hash, content
FROM windlass_parts
WHERE job_id = $1 AND chunk > $2
ORDER BY chunk
LIMIT $3
