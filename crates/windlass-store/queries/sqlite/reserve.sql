-- Reserves time for items at the rate limits of their job type and job, from the time that
-- time_until_free.sql computes.
-- Lock: the write transaction.
-- Index: the primary keys.
UPDATE windlass_controls
SET next_at = now + max(coalesce(min(next_at - now, next_at - reserved_at), 0), 0)
        + CAST(?2 * 1000 / coalesce(rate, default_rate) AS INTEGER),
    reserved_at = now
FROM (SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER) AS now)
WHERE subject IN (?1, (SELECT job_type FROM windlass_jobs WHERE id = ?1))
    AND coalesce(rate, default_rate) IS NOT NULL
