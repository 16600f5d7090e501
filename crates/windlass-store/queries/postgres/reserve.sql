-- Reserves the time of so many items at the rate of their job type and job, unless it begins later
-- than $3 milliseconds from now; gives the milliseconds until it begins. What was reserved at a time
-- that is still to come was reserved by a clock that has been set back since: it counts as reserved
-- now.
-- Lock: the control rows, in order. Index: the primary keys.
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
