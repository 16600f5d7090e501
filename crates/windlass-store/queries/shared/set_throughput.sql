-- Sets the limits of a subject. NULL keeps a limit, zero restores the limit of the definition.
-- Reservations at the old rate are dropped.
-- Lock: the control row.
-- Index: the primary key.
INSERT INTO windlass_controls AS c (subject, concurrency, rate)
VALUES ($1, nullif($2, 0), nullif($3, 0))
ON CONFLICT (subject) DO UPDATE
SET concurrency = CASE WHEN $2 IS NULL THEN c.concurrency ELSE excluded.concurrency END,
    rate = CASE WHEN $3 IS NULL THEN c.rate ELSE excluded.rate END,
    next_at = NULL
