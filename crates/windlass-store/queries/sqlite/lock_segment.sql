-- Reads a segment, to compare it with a page, and the number for the next new segment.
-- Lock: the write transaction.
-- Index: the primary key.
SELECT status, epoch, nonce, state,
    (SELECT max(n.number) + 1 FROM windlass_segments n WHERE n.job_id = ?1) AS next
FROM windlass_segments
WHERE job_id = ?1 AND number = ?2
