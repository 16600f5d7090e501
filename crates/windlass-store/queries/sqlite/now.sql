-- What time it is. Lock: none. Index: none.
SELECT CAST(unixepoch('subsec') * 1000 AS INTEGER) AS now
