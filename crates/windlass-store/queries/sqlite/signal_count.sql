-- Reads the counter that waiting processes poll.
-- Lock: none.
-- Index: none; the table has one row.
SELECT count FROM windlass_signal
