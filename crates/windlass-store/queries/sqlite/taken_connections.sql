-- Adds up the shares of a connection (?1).
-- Lock: none (reads a snapshot).
-- Index: the primary key.
SELECT coalesce(sum(connections), 0) AS connections, count(*) AS processes
FROM windlass_connection_shares
WHERE connection = ?1 AND expires_at > CAST(unixepoch('subsec') * 1000 AS INTEGER)
