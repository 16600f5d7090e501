-- Adds up the shares of a connection ($1).
-- Lock: none.
-- Index: the primary key.
SELECT coalesce(sum(connections), 0)::bigint AS connections, count(*) AS processes
FROM windlass_connection_shares
WHERE connection = $1 AND expires_at > clock_timestamp()
