-- Inserts the merge segment of a job, after its other segments.
-- Lock: the write transaction.
-- Index: the primary key.
INSERT INTO windlass_segments (job_id, number, state, key_range, available_at)
SELECT ?1, coalesce(max(number) + 1, 0), ?2, ?3, CAST(unixepoch('subsec') * 1000 AS INTEGER)
FROM windlass_segments
WHERE job_id = ?1
