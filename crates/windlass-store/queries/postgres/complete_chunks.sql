-- Completes the chunks of a job that are held at these epochs. Lock: the chunks, after their job.
-- Index: the primary key.
UPDATE windlass_chunks c
SET status = 'COMPLETED',
    cursor = d.cursor,
    read = d.read,
    processed = d.processed,
    skipped = d.skipped,
    dead = d.dead,
    conflicts = d.conflicts,
    lease_until = NULL,
    finished_at = clock_timestamp()
FROM unnest(
    $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[],
    $8::bigint[], $9::bigint[]
) AS d (number, epoch, cursor, read, processed, skipped, dead, conflicts)
WHERE c.job_id = $1 AND c.number = d.number AND c.epoch = d.epoch AND c.status = 'PROCESSING'
