-- Holds a subject for so many milliseconds: of a job type, no chunk is claimed meanwhile. A longer
-- hold stands; of a connection the last one does, since it only tells the state of its database.
-- Lock: the control row. Index: the primary key.
INSERT INTO windlass_controls AS c (subject, suspended_until, reason)
VALUES ($1, clock_timestamp() + $2 * interval '1 millisecond', $3)
ON CONFLICT (subject) DO UPDATE
SET suspended_until = excluded.suspended_until, reason = excluded.reason
WHERE c.suspended_until IS NULL OR c.suspended_until < excluded.suspended_until OR c.subject LIKE 'connection:%'
