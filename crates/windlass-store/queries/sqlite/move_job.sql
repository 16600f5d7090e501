-- Moves a job to a status that the table of edges allows; ?5 is now, clear or keep.
-- Lock: the writer's. Index: the primary key.
UPDATE windlass_jobs
SET status = ?2,
    error = ?3,
    grants = grants + ?4,
    finished_at = CASE ?5
        WHEN 'now' THEN CAST(unixepoch('subsec') * 1000 AS INTEGER)
        WHEN 'clear' THEN NULL
        ELSE finished_at
    END
WHERE id = ?1
