-- The jobs that have ledger rows, with the number of rows. Used only after a restore of the store. Lock: none.
SELECT job_id, count(*) FROM windlass_ledger GROUP BY job_id ORDER BY job_id
