-- Removes a closed job, unless a letter has come in that somebody must decide about.
-- Lock: the writer's. Index: the primary key; windlass_dead_letters_item.
DELETE FROM windlass_jobs
WHERE id = ?1
    AND closed = 1
    AND NOT EXISTS (SELECT 1 FROM windlass_dead_letters l WHERE l.job_id = ?1)
