-- Removes the letters of a closed job that are settled. Lock: the writer's.
-- Index: windlass_dead_letters_item.
DELETE FROM windlass_dead_letters WHERE job_id = ?1 AND status <> 'new'
