-- Deletes the share of a process ($2) of a connection ($1).
-- Lock: the row; in SQLite the write transaction.
-- Index: the primary key.
DELETE FROM windlass_connection_shares
WHERE connection = $1 AND process = $2
