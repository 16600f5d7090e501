-- The points that could not be resolved, with the columns of the specification. For a store in SQLite.
--   id               the id of the dead letter, for `windlass dead show|redrive|ignore`
--   originalJobId    the jobId of the payload, or the id of the job if the payload has none
--   originalPoiData  the complete point as JSON
DROP VIEW IF EXISTS failed_pois;
CREATE VIEW failed_pois AS
SELECT letters.id AS id,
    coalesce(jobs.idempotency_key, letters.job_id) AS originalJobId,
    strftime('%Y-%m-%dT%H:%M:%fZ', letters.created_at / 1000.0, 'unixepoch') AS failedAt,
    letters.error AS errorMessage,
    letters.context AS errorContext,
    letters.record AS originalPoiData,
    letters.status AS status
FROM windlass_dead_letters AS letters
JOIN windlass_jobs AS jobs ON jobs.id = letters.job_id
WHERE letters.job_type = 'RESOLVE_RELATIONSHIPS';
