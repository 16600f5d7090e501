-- Groups dead letters by job type and fingerprint, most frequent first.
-- Lock: none.
-- Index: windlass_dead_letters_item if a job is given, or _submitter.
SELECT job_type, fingerprint,
    CASE WHEN min(error) = max(error) THEN min(error) ELSE fingerprint END AS error,
    count(*) AS letters, max(created_at) AS last_at
FROM windlass_dead_letters
WHERE {filter}
GROUP BY job_type, fingerprint
ORDER BY count(*) DESC, job_type, fingerprint
LIMIT $10
