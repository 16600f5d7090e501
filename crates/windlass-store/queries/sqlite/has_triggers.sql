-- Checks whether a trigger is due.
-- Lock: none (reads a snapshot).
-- Index: none; the table is small.
SELECT EXISTS (SELECT 1 FROM windlass_triggers WHERE available_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER)) AS due
