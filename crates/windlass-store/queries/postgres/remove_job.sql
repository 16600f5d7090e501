-- Removes a closed job, unless a letter has come in that somebody must decide about.
-- Lock: the job, held already. Index: the primary key; windlass_dead_letters_item.
DELETE FROM windlass_jobs
WHERE id = $1
    AND closed
    AND NOT EXISTS (SELECT FROM windlass_dead_letters l WHERE l.job_id = $1)
