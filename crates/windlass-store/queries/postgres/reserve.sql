-- Reserves time for items at the rate limits of their job type and job, unless the reserved time
-- begins later than $3 milliseconds from now. Returns the milliseconds until it begins. A
-- reservation that was made in the future was made before the clock was set back, and counts as
-- made now.
-- Lock: the control rows, in order.
-- Index: the primary keys.
WITH limited AS (
    SELECT
        c.subject, coalesce(c.rate, c.default_rate) AS rate,
        greatest(
            least(c.next_at, clock_timestamp() + (c.next_at - c.reserved_at)), clock_timestamp()
        ) AS begins
    FROM windlass_controls c JOIN windlass_jobs j ON c.subject IN (j.job_type, j.id::text)
    WHERE j.id = $1 AND coalesce(c.rate, c.default_rate) IS NOT NULL
    ORDER BY c.subject
    FOR UPDATE OF c
),
wait AS (
    SELECT
        coalesce(max(extract(epoch FROM begins - clock_timestamp()) * 1000), 0)::bigint AS wait
    FROM limited
),
reserved AS (
    UPDATE windlass_controls c
    SET next_at = l.begins + $2::float8 / l.rate * interval '1 second', reserved_at = clock_timestamp()
    FROM limited l
    WHERE c.subject = l.subject AND (SELECT wait FROM wait) <= $3
)
SELECT wait FROM wait
