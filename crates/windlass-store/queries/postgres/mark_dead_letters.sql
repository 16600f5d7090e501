-- Sets the status of matching letters that are `new` and not being redriven.
-- Lock: the letters, in order of their ids.
-- Index: windlass_dead_letters_newest or _item.
WITH chosen AS MATERIALIZED (
    SELECT l.id
    FROM windlass_dead_letters l
    WHERE l.id IN (
        SELECT m.id
        FROM windlass_dead_letters m
        WHERE {filter}
            AND {redrivable}
        ORDER BY m.created_at DESC, m.id DESC
        LIMIT $10
    )
        AND {redrivable}
    ORDER BY l.id
    FOR UPDATE OF l
)
UPDATE windlass_dead_letters l
SET status = $11, updated_at = clock_timestamp()
FROM chosen c
WHERE l.id = c.id
