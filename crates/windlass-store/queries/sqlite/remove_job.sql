-- Deletes a closed job, unless it has got a `new` dead letter.
-- Lock: the write transaction.
-- Index: the primary key; windlass_dead_letters_item.
DELETE FROM windlass_jobs
WHERE id = ?1
    AND closed = 1
    AND NOT EXISTS (SELECT 1 FROM windlass_dead_letters l WHERE l.job_id = ?1)
