-- Wakes whoever waits for work, when this transaction commits. Lock: none of ours. Index: none.
SELECT pg_notify('windlass', '')
