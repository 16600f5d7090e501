-- Releases the letters of a redrive that was cancelled or is being deleted.
-- Lock: the write transaction.
-- Index: windlass_dead_letters_redrive.
UPDATE windlass_dead_letters
SET redrive_job = NULL, updated_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE redrive_job = ?1 AND status = 'new'
