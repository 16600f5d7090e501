-- What is said of every subject that something is said of. Lock: none. Index: none, they are few.
SELECT
    subject, stopped, coalesce(concurrency, default_concurrency) AS concurrency,
    coalesce(rate, default_rate) AS rate,
    CASE WHEN suspended_until > clock_timestamp() THEN reason END AS suspended
FROM windlass_controls
ORDER BY subject
