-- What is said of every subject that something is said of. Lock: none, on a snapshot.
-- Index: none, they are few.
SELECT
    subject, stopped, coalesce(workers, default_workers) AS workers,
    coalesce(rate, default_rate) AS rate,
    CASE WHEN held_until > CAST(unixepoch('subsec') * 1000 AS INTEGER) THEN reason END AS held
FROM windlass_controls
ORDER BY subject
