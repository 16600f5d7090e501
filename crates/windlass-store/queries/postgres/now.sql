-- What time it is. Lock: none. Index: none.
SELECT clock_timestamp() AS now
