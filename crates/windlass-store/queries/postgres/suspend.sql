-- Suspends a subject for some milliseconds; chunks of a suspended job type are not leased. A
-- longer suspension is kept, except for a connection, where it only shows the health of its
-- database. Records the outage, which is extended while it lasts; a throttled database is available.
-- Outages are kept for 30 days.
-- Lock: the control row and the outages of the subject.
-- Index: the primary keys.
WITH this AS (
    SELECT at, at + CASE WHEN $3 LIKE 'throttled%' THEN 0 ELSE $2 END * interval '1 millisecond' AS upto
    FROM (SELECT clock_timestamp() AS at) AS clock
),
extended AS (
    UPDATE windlass_outages o
    SET ended_at = CASE
        WHEN o.subject LIKE 'connection:%' THEN this.upto
        ELSE greatest(o.ended_at, this.upto)
    END
    FROM this
    WHERE o.subject = $1 AND o.ended_at >= this.at
    RETURNING o.subject
),
begun AS (
    INSERT INTO windlass_outages (subject, began_at, ended_at)
    SELECT $1, at, upto
    FROM this
    WHERE upto > at AND NOT EXISTS (SELECT FROM extended)
    ON CONFLICT DO NOTHING
),
expired AS (
    DELETE FROM windlass_outages
    WHERE subject = $1 AND ended_at < clock_timestamp() - interval '30 days'
)
INSERT INTO windlass_controls AS c (subject, suspended_until, reason)
VALUES ($1, clock_timestamp() + $2 * interval '1 millisecond', $3)
ON CONFLICT (subject) DO UPDATE
SET suspended_until = excluded.suspended_until, reason = excluded.reason
WHERE c.suspended_until IS NULL OR c.suspended_until < excluded.suspended_until OR c.subject LIKE 'connection:%'
