-- Reads the clock.
-- Lock: none.
-- Index: none.
SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER) AS now
