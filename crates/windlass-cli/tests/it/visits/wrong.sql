-- Counts the visits in conflict whose computed columns differ from the facts of the two visits.
WITH billed AS (
    SELECT *, round("BilledRate" * "BilledMinutes" / 60, 2) AS "BilledAmount"
    FROM visits NATURAL JOIN services NATURAL JOIN providers
)
SELECT count(*)
FROM conflictvisitmaps AS m, billed AS a, billed AS b
WHERE m."CONFLICTID" IS NOT NULL
    AND a."VisitID" = m."VisitID"
    AND b."VisitID" = m."ConVisitID"
    AND (
        (
            m."ServiceCodeID", m."ServiceCode", m."ServiceName", m."ProviderID", m."ProviderName",
            m."CaregiverCode", m."SchStartTime", m."SchEndTime", m."BilledRate", m."BilledMinutes",
            m."BilledAmount"
        ) IS DISTINCT FROM (
            a."ServiceCodeID", a."ServiceCode", a."ServiceName", a."ProviderID", a."ProviderName",
            a."CaregiverCode", a."SchStartTime", a."SchEndTime", a."BilledRate", a."BilledMinutes",
            a."BilledAmount"
        )
        OR (
            m."ConServiceCodeID", m."ConServiceCode", m."ConServiceName", m."ConProviderID",
            m."ConProviderName", m."ConCaregiverCode", m."ConSchStartTime", m."ConSchEndTime",
            m."ConBilledRate", m."ConBilledMinutes", m."ConBilledAmount"
        ) IS DISTINCT FROM (
            b."ServiceCodeID", b."ServiceCode", b."ServiceName", b."ProviderID", b."ProviderName",
            b."CaregiverCode", b."SchStartTime", b."SchEndTime", b."BilledRate", b."BilledMinutes",
            b."BilledAmount"
        )
        OR m."RateDifference" IS DISTINCT FROM a."BilledRate" - b."BilledRate"
        OR (m."OverlapMinutes" > 0)
            IS DISTINCT FROM (a."SchStartTime", a."SchEndTime") OVERLAPS (b."SchStartTime", b."SchEndTime")
    )
