-- Deletes the letters of a closed job that are not `new`.
-- Lock: the letters.
-- Index: windlass_dead_letters_item.
DELETE FROM windlass_dead_letters WHERE job_id = $1 AND status <> 'new'
