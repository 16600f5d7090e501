-- Releases the letters of a redrive that was cancelled or is being deleted.
-- Lock: the letters, in order of their ids, after the job.
-- Index: windlass_dead_letters_redrive.
WITH freed AS MATERIALIZED (
    SELECT id
    FROM windlass_dead_letters
    WHERE redrive_job = $1 AND status = 'new'
    ORDER BY id
    FOR UPDATE
)
UPDATE windlass_dead_letters l
SET redrive_job = NULL, updated_at = clock_timestamp()
FROM freed f
WHERE l.id = f.id
