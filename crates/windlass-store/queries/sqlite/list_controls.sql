-- Lists the subjects that have a control.
-- Lock: none (reads a snapshot).
-- Index: none; the table is small.
SELECT
    subject, stopped, coalesce(concurrency, default_concurrency) AS concurrency,
    coalesce(rate, default_rate) AS rate,
    CASE WHEN suspended_until > CAST(unixepoch('subsec') * 1000 AS INTEGER) THEN reason END AS suspended
FROM windlass_controls
ORDER BY subject
