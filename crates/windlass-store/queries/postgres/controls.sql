-- What is said of every subject that something is said of. Lock: none. Index: none, they are few.
SELECT
    subject, stopped, coalesce(workers, default_workers) AS workers,
    coalesce(rate, default_rate) AS rate,
    CASE WHEN held_until > clock_timestamp() THEN reason END AS held
FROM windlass_controls
ORDER BY subject
