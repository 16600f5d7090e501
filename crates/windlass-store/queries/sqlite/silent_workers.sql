-- Lists the processes of a host (?1) without a heartbeat for ?2 milliseconds.
-- Lock: none (reads a snapshot).
-- Index: none; the table is small.
SELECT name, process
FROM windlass_workers
WHERE substr(process, 1, length(?1)) = ?1
    AND seen_at < CAST(unixepoch('subsec') * 1000 AS INTEGER) - ?2
ORDER BY name
