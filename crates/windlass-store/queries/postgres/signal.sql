-- Notifies all subscriptions when the transaction commits.
-- Lock: none.
-- Index: none.
SELECT pg_notify('windlass', '')
