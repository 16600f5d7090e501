-- Jobs that completed longer ago than $1 milliseconds and whose ledger rows are still there.
-- Lock: none. Index: windlass_jobs_prunable.
SELECT id
FROM windlass_jobs
WHERE status = 'COMPLETED'
    AND NOT ledger_pruned
    AND finished_at <= clock_timestamp() - $1 * interval '1 millisecond'
ORDER BY finished_at
LIMIT $2
