-- Extends the current outage of a subject by some milliseconds from now, or ends it with zero.
-- Lock: the write transaction.
-- Index: the primary key.
UPDATE windlass_outages
SET ended_at = CASE
    WHEN subject LIKE 'connection:%' THEN CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?2
    ELSE max(ended_at, CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?2)
END
WHERE subject = ?1 AND ended_at >= CAST(unixepoch('subsec') * 1000 AS INTEGER)
