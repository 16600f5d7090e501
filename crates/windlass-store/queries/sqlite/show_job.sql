-- One job; job_sums.sql is the rest. Unless it has come to rest and carries its sums, they are taken over its chunks.
-- Lock: none, on a snapshot. Index: the primary keys.
WITH page AS MATERIALIZED (
    SELECT *,
        status IN ('COMPLETED', 'FAILED', 'CANCELLED') AND open_segments + open_chunks = 0 AS rests
    FROM windlass_jobs
    WHERE id = ?1
),
