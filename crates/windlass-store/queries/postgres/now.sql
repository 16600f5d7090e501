-- Reads the clock.
-- Lock: none.
-- Index: none.
SELECT clock_timestamp() AS now
