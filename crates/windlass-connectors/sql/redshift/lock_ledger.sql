-- The first statement of a fence and of a load. It waits for every other fence and load, so that what is read
-- afterwards is not changed before the end of the transaction. The snapshot of the transaction begins after it.
-- Lock: the table, for readers too, until the end of the transaction.
LOCK windlass_ledger
