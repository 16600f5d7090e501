-- Gives matching letters of a job to a redrive: those that are `new` and not being redriven.
-- Letters that another redrive is assigning are skipped. The condition is checked again after
-- locking, so that no letter is assigned twice.
-- Lock: the assigned letters.
-- Index: windlass_dead_letters_item.
WITH chosen AS MATERIALIZED (
    SELECT l.id
    FROM windlass_dead_letters l
    WHERE {filter}
        AND job_id = $11
        AND {redrivable}
    ORDER BY created_at, id
    LIMIT $10
    FOR UPDATE SKIP LOCKED
)
UPDATE windlass_dead_letters l
SET redrive_job = $12, updated_at = clock_timestamp()
FROM chosen c
WHERE l.id = c.id
RETURNING l.key
