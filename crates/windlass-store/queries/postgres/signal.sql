-- Notifies all processes that listen of a committed change. $1 names the sender, which ignores it,
-- and the topics of the change.
-- Lock: a lock on all databases of the server, until the transaction has committed.
-- Index: none.
SELECT pg_notify('windlass', $1)
