-- Lists the read snapshots whose lease has expired although their job has chunks to read.
-- Lock: none.
-- Index: windlass_read_snapshots_held, windlass_chunks (primary key).
SELECT s.job_id, s.number, s.server, s.worker, s.losses, j.chunks_total,
    (extract(epoch FROM clock_timestamp() - s.taken_at) * 1000)::bigint AS age_ms,
    (
        SELECT count(*)
        FROM windlass_chunks c
        WHERE c.job_id = s.job_id AND c.status = 'COMPLETED'
    ) AS completed
FROM windlass_read_snapshots s JOIN windlass_jobs j ON j.id = s.job_id
WHERE s.lease_until < clock_timestamp()
    AND j.status IN ('QUEUED', 'PROCESSING')
    AND j.open_segments + j.open_chunks > 0
    AND j.merge IS DISTINCT FROM 'begun'
