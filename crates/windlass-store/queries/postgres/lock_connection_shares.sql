-- Serializes the processes that take a share of one connection ($1). An own statement, so that the next one sees
-- the shares that were taken before.
-- `windlass.in_transaction`: see count_ended_chunk.sql.
-- Lock: an advisory lock of the transaction.
-- Index: none.
SELECT pg_advisory_xact_lock(hashtextextended('windlass_connection_shares ' || $1::text, 0))
WHERE current_setting('windlass.in_transaction', true) = 'on'
