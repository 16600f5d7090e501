-- Gives matching letters of a job to a redrive: those that are `new` and not being redriven.
-- Lock: the write transaction.
-- Index: windlass_dead_letters_item.
UPDATE windlass_dead_letters
SET redrive_job = ?12, updated_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE id IN (
    SELECT id
    FROM windlass_dead_letters
    WHERE {filter}
        AND {redrivable}
        AND job_id = ?11
    ORDER BY created_at, id
    LIMIT ?10
)
RETURNING key
