-- The milliseconds until the next item of a job may begin, by the rate of its job type and its own.
-- Lock: the writer's. Index: the primary keys.
SELECT coalesce(max(next_at - CAST(unixepoch('subsec') * 1000 AS INTEGER)), 0) AS wait
FROM windlass_controls
WHERE subject IN (?1, (SELECT job_type FROM windlass_jobs WHERE id = ?1))
    AND coalesce(rate, default_rate) IS NOT NULL
    AND next_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)
