-- Stores the part of a chunk, in the transaction that completes the chunk, or the merged result.
-- Lock: the new row, after the chunk.
-- Index: the primary key.
INSERT INTO windlass_parts
    (job_id, chunk, epoch, name, rows, bytes, sha256, content_hash, content, nonce)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
ON CONFLICT (job_id, chunk) DO UPDATE
SET epoch = excluded.epoch, nonce = excluded.nonce, name = excluded.name,
    rows = excluded.rows, bytes = excluded.bytes,
    sha256 = excluded.sha256, content_hash = excluded.content_hash, content = excluded.content
