-- Inserts the segment that merges a job, after its others. Lock: the writer's.
-- Index: the primary key.
INSERT INTO windlass_segments (job_id, number, state, key_range, available_at)
SELECT ?1, coalesce(max(number) + 1, 0), ?2, ?3, CAST(unixepoch('subsec') * 1000 AS INTEGER)
FROM windlass_segments
WHERE job_id = ?1
