-- Lists the chunks in progress beyond the limit of their job type or job: those that started last.
-- Lock: none.
-- Index: windlass_jobs_leasable; windlass_chunks_processing.
SELECT job_id, number, epoch, nonce
FROM (
    SELECT
        c.job_id, c.number, c.epoch, c.nonce, coalesce(l.concurrency, l.default_concurrency) AS most,
        row_number() OVER (PARTITION BY l.subject ORDER BY j.priority DESC, j.created_at, j.id, c.number)
            AS place
    FROM windlass_controls l
    JOIN windlass_jobs j ON l.subject IN (j.job_type, CAST(j.id AS text))
    JOIN windlass_chunks c ON c.job_id = j.id AND c.status = 'PROCESSING'
    WHERE coalesce(l.concurrency, l.default_concurrency) IS NOT NULL
        AND j.status IN ('QUEUED', 'PROCESSING')
        AND j.waits = 0
) ranked
WHERE place > most
