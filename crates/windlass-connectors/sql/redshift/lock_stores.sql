-- The first statement of a transaction that raises a generation.
-- Lock: the table, until the end of the transaction.
LOCK windlass_stores
