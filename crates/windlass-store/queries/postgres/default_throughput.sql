-- Stores the limits of a job type's definition, as of its newest job.
-- Lock: the control row.
-- Index: the primary key.
INSERT INTO windlass_controls AS c (subject, default_concurrency, default_rate)
SELECT $1, $2, $3
WHERE $2 IS NOT NULL OR $3 IS NOT NULL
    OR EXISTS (SELECT FROM windlass_controls WHERE subject = $1)
ON CONFLICT (subject) DO UPDATE
SET default_concurrency = excluded.default_concurrency, default_rate = excluded.default_rate
WHERE c.default_concurrency IS DISTINCT FROM excluded.default_concurrency
    OR c.default_rate IS DISTINCT FROM excluded.default_rate
