-- Deletes the outages of a subject that ended more than 30 days ago.
-- Lock: the write transaction.
-- Index: the primary key.
DELETE FROM windlass_outages
WHERE subject = ?1 AND ended_at < CAST(unixepoch('subsec') * 1000 AS INTEGER) - 30 * 86400000
