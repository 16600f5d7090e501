-- Counts the `new` letters of each job type, up to $1.
-- Lock: none.
-- Index: windlass_dead_letters_new, one lookup per job type.
WITH RECURSIVE types AS (
    SELECT min(job_type) AS job_type FROM windlass_dead_letters WHERE status = 'new'
    UNION ALL
    SELECT (
        SELECT min(l.job_type)
        FROM windlass_dead_letters l
        WHERE l.status = 'new' AND l.job_type > t.job_type
    )
    FROM types t
    WHERE t.job_type IS NOT NULL
)
SELECT
    t.job_type,
    (
        SELECT count(*)
        FROM (
            SELECT 1
            FROM windlass_dead_letters l
            WHERE l.status = 'new' AND l.job_type = t.job_type
            LIMIT $1
        ) counted
    ) AS letters
FROM types t
WHERE t.job_type IS NOT NULL
