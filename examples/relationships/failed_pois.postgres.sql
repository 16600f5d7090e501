-- The points that could not be resolved, with the columns of the specification. For a store in PostgreSQL.
-- See failed_pois.sql.
CREATE OR REPLACE VIEW failed_pois AS
SELECT letters.id AS id,
    coalesce(jobs.idempotency_key, letters.job_id::text) AS "originalJobId",
    letters.created_at AT TIME ZONE 'UTC' AS "failedAt",
    letters.error AS "errorMessage",
    letters.context AS "errorContext",
    letters.record::json AS "originalPoiData",
    letters.status AS status
FROM windlass_dead_letters AS letters
JOIN windlass_jobs AS jobs ON jobs.id = letters.job_id
WHERE letters.job_type = 'RESOLVE_RELATIONSHIPS';
