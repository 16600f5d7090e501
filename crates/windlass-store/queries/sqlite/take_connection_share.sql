-- Takes ?3 connections of the total ?4 of connection ?1 for process ?2 until ?5 milliseconds from now, or extends the
-- share that the process has. Changes no row if the others leave less.
-- Lock: the write transaction.
-- Index: the primary key.
INSERT INTO windlass_connection_shares (connection, process, connections, expires_at)
SELECT ?1, ?2, ?3, CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?5
WHERE EXISTS (SELECT 1 FROM windlass_connection_shares WHERE connection = ?1 AND process = ?2)
    OR (SELECT coalesce(sum(connections), 0) FROM windlass_connection_shares WHERE connection = ?1) + ?3 <= ?4
ON CONFLICT (connection, process) DO UPDATE
SET connections = excluded.connections,
    expires_at = excluded.expires_at
