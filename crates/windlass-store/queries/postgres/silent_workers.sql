-- Lists the processes of a host ($1) without a heartbeat for $2 milliseconds.
-- Lock: none.
-- Index: none; the table is small.
SELECT name, process
FROM windlass_workers
WHERE starts_with(process, $1) AND seen_at < clock_timestamp() - $2 * interval '1 millisecond'
ORDER BY name
