-- Jobs that completed longer ago than ?1 milliseconds and whose ledger rows are still there.
-- Lock: none. Index: windlass_jobs_prunable.
SELECT id
FROM windlass_jobs
WHERE status = 'COMPLETED'
    AND ledger_pruned = 0
    AND finished_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER) - ?1
ORDER BY finished_at
LIMIT ?2
