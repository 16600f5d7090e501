-- Renews valid leases of chunks, never past their deadline, and stores the progress where it is
-- given. It changes no indexed column. The status is compared as an expression; see confirm.sql.
-- Lock: the chunks, in order of their keys as in complete_chunks.sql, so that the two cannot deadlock.
-- Index: the primary keys.
WITH jobs AS MATERIALIZED (
    SELECT id, status, lease_ms FROM windlass_jobs WHERE id = ANY ($1)
),
held AS MATERIALIZED (
    SELECT b.*
    FROM (
        SELECT *
        FROM unnest(
                $1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::bigint[],
                $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[]
            ) WITH ORDINALITY
                AS given (
                    job, number, epoch, nonce, cursor, read, processed, skipped, dead, conflicts, longest,
                    marked, place
                )
        ORDER BY job, number
    ) b
    CROSS JOIN LATERAL (
        SELECT epoch, nonce, status
        FROM windlass_chunks
        WHERE job_id = b.job AND number = b.number
        FOR NO KEY UPDATE
    ) c
    WHERE c.epoch = b.epoch AND c.nonce = b.nonce AND c.status || '' = 'PROCESSING'
)
UPDATE windlass_chunks c
SET lease_until =
        least(
            clock_timestamp() + least(j.lease_ms, b.longest) * interval '1 millisecond', c.deadline
        ),
    cursor = coalesce(b.cursor, c.cursor),
    read = coalesce(b.read, c.read),
    processed = coalesce(b.processed, c.processed),
    skipped = coalesce(b.skipped, c.skipped),
    dead = coalesce(b.dead, c.dead),
    conflicts = coalesce(b.conflicts, c.conflicts),
    marked = coalesce(b.marked, c.marked)
FROM held b JOIN jobs j ON j.id = b.job
WHERE c.job_id = b.job AND c.number = b.number
RETURNING b.place, j.status
