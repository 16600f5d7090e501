-- Marks the letters whose items a redrive has processed as `reprocessed`. Letters whose items
-- failed again no longer name the redrive.
-- Lock: the letters, in order of their ids, after job and chunk.
-- Index: windlass_dead_letters_redrive.
WITH settled AS MATERIALIZED (
    SELECT id
    FROM windlass_dead_letters
    WHERE redrive_job = $1 AND status = 'new' AND key = ANY ($2)
    ORDER BY id
    FOR UPDATE
)
UPDATE windlass_dead_letters l
SET status = 'reprocessed', updated_at = clock_timestamp()
FROM settled s
WHERE l.id = s.id
