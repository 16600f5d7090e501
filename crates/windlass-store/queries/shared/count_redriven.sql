-- Counts the letters that name a redrive.
-- Lock: none.
-- Index: windlass_dead_letters_redrive.
SELECT count(*) AS letters FROM windlass_dead_letters WHERE redrive_job = $1
