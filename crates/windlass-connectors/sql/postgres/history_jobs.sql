-- The jobs that have ledger rows, and how many. Read only after a restore of the store.
-- Lock: none. Index: the primary key, all of it.
SELECT job_id, count(*) FROM windlass_ledger GROUP BY job_id ORDER BY job_id
