-- Inserts a segment with the status ?5.
-- Lock: the write transaction.
-- Index: the primary key.
INSERT INTO windlass_segments (job_id, number, state, key_range, available_at, status)
VALUES (?1, ?2, ?3, ?4, CAST(unixepoch('subsec') * 1000 AS INTEGER), ?5)
