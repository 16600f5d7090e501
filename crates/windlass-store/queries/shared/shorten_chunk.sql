-- Shortens a chunk that is split: its records end at its cursor.
-- Lock: the chunk (already locked).
-- Index: the primary key.
UPDATE windlass_chunks SET key_set = $3, items = $4 WHERE job_id = $1 AND number = $2 RETURNING segment
