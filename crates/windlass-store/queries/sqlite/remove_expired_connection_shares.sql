-- Deletes the shares of a connection (?1) whose processes have ended without giving them back.
-- Lock: the write transaction.
-- Index: the primary key.
DELETE FROM windlass_connection_shares
WHERE connection = ?1 AND expires_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER)
