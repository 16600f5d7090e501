-- Inserts a chunk.
-- Lock: the write transaction.
-- Index: the primary key.
INSERT INTO windlass_chunks (job_id, segment, number, key_set, items, available_at)
VALUES (?1, ?2, ?3, ?4, ?5, CAST(unixepoch('subsec') * 1000 AS INTEGER))
