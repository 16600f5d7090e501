-- Marks the letters whose items a redrive has processed as `reprocessed`. Letters whose items
-- failed again no longer name the redrive.
-- Lock: the write transaction.
-- Index: windlass_dead_letters_redrive.
UPDATE windlass_dead_letters
SET status = 'reprocessed', updated_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE redrive_job = ?1 AND status = 'new' AND key IN (SELECT value FROM json_each(?2))
