-- Reads jobs by their ids; job_sums.sql is the second half. A job that has ended carries its sums. Otherwise
-- its chunks are added up.
-- Lock: none.
-- Index: the primary keys.
WITH page AS MATERIALIZED (
    SELECT *,
        status IN ('COMPLETED', 'FAILED', 'CANCELLED') AND open_segments + open_chunks = 0 AS has_sums
    FROM windlass_jobs
    WHERE id = ANY($1)
),
