-- The counter that waiting processes look at. Lock: none. Index: the one row.
SELECT count FROM windlass_signal
