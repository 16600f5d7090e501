-- The milliseconds until the next item of a job may begin, by the rate of its job type and its own.
-- What was reserved at a time that is still to come was reserved by a clock that has been set back
-- since: it counts as reserved now.
-- Lock: the writer's. Index: the primary keys.
SELECT max(coalesce(max(min(next_at - now, next_at - reserved_at)), 0), 0) AS wait
FROM windlass_controls, (SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER) AS now)
WHERE subject IN (?1, (SELECT job_type FROM windlass_jobs WHERE id = ?1))
    AND coalesce(rate, default_rate) IS NOT NULL
