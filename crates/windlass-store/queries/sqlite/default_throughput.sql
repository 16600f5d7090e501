-- Stores the limits of a job type's definition, as of its newest job.
-- Lock: the write transaction.
-- Index: the primary key.
INSERT INTO windlass_controls AS c (subject, default_concurrency, default_rate)
SELECT ?1, ?2, ?3
WHERE ?2 IS NOT NULL OR ?3 IS NOT NULL
    OR EXISTS (SELECT 1 FROM windlass_controls WHERE subject = ?1)
ON CONFLICT (subject) DO UPDATE
SET default_concurrency = excluded.default_concurrency, default_rate = excluded.default_rate
