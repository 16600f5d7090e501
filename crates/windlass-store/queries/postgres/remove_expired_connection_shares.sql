-- Deletes the shares of a connection ($1) whose processes have ended without giving them back.
-- Lock: the rows; the caller holds the lock of the connection.
-- Index: the primary key.
DELETE FROM windlass_connection_shares
WHERE connection = $1 AND expires_at <= clock_timestamp()
