-- Lists the subjects that have a control.
-- Lock: none.
-- Index: none; the table is small.
SELECT
    subject, stopped, coalesce(concurrency, default_concurrency) AS concurrency,
    coalesce(rate, default_rate) AS rate,
    CASE WHEN suspended_until > clock_timestamp() THEN reason END AS suspended
FROM windlass_controls
ORDER BY subject
