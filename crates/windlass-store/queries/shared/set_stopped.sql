-- Stops or starts a subject.
-- Lock: the control row.
-- Index: the primary key.
INSERT INTO windlass_controls (subject, stopped)
VALUES ($1, $2)
ON CONFLICT (subject) DO UPDATE SET stopped = excluded.stopped
