-- Sets the status of matching letters that are `new` and not being redriven.
-- Lock: the write transaction.
-- Index: windlass_dead_letters_newest or _item.
UPDATE windlass_dead_letters
SET status = ?11, updated_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE id IN (
    SELECT id
    FROM windlass_dead_letters
    WHERE {filter}
        AND {redrivable}
    ORDER BY created_at DESC, id DESC
    LIMIT ?10
)
