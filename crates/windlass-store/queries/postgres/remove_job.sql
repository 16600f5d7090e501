-- Deletes a closed job, unless it has got a `new` dead letter.
-- Lock: the job (already locked).
-- Index: the primary key; windlass_dead_letters_item.
DELETE FROM windlass_jobs
WHERE id = $1
    AND closed
    AND NOT EXISTS (SELECT FROM windlass_dead_letters l WHERE l.job_id = $1)
