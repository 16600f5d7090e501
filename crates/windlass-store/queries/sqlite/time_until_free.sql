-- Computes the milliseconds until the next item of a job may begin, by the rate limits of its job
-- type and its own. A reservation that was made in the future was made before the clock was set
-- back, and counts as made now.
-- Lock: the write transaction.
-- Index: the primary keys.
SELECT max(coalesce(max(min(next_at - now, next_at - reserved_at)), 0), 0) AS wait
FROM windlass_controls, (SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER) AS now)
WHERE subject IN (?1, (SELECT job_type FROM windlass_jobs WHERE id = ?1))
    AND coalesce(rate, default_rate) IS NOT NULL
