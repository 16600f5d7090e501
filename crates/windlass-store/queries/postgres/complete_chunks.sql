-- Completes chunks of a job if all $10 of them are still leased at these epochs, and decreases the
-- counter of open chunks. Otherwise it changes nothing; neither if they are the last open ones,
-- unless $11 is true. Each chunk is locked by a subquery of its own, so that it is found by its key: in a join
-- the planner expects that few rows have the epoch and the nonce, and reads all chunks of the job. Measured
-- with 200 of 20,000 chunks: 36 ms in a join, 3 ms by key. The status is compared as an expression,
-- which keeps the planner from the partial index: its dead entries pile up while a long transaction is open.
-- It is sent together with BEGIN. `windlass.in_transaction` is set only if BEGIN succeeded: without a
-- transaction this statement changes nothing.
-- Lock: the job, then the chunks in order of their keys.
-- Index: the primary keys.
WITH head AS MATERIALIZED (
    SELECT id
    FROM windlass_jobs
    WHERE id = $1 AND current_setting('windlass.in_transaction', true) = 'on'
    FOR NO KEY UPDATE
),
held AS MATERIALIZED (
    SELECT d.*
    FROM head
        CROSS JOIN (
            SELECT *
            FROM unnest(
                $2::bigint[], $3::bigint[], $4::text[], $5::bigint[], $6::bigint[], $7::bigint[],
                $8::bigint[], $9::bigint[], $12::bigint[], $13::bigint[]
            ) AS d (number, epoch, cursor, read, processed, skipped, dead, conflicts, nonce, marked)
            ORDER BY number
        ) d
        CROSS JOIN LATERAL (
            SELECT epoch, nonce, status
            FROM windlass_chunks
            WHERE job_id = head.id AND number = d.number
            FOR UPDATE
        ) c
    WHERE c.epoch = d.epoch AND c.nonce = d.nonce AND c.status || '' = 'PROCESSING'
),
job AS (
    UPDATE windlass_jobs
    SET open_chunks = open_chunks - $10,
        status = CASE status WHEN 'QUEUED' THEN 'PROCESSING' ELSE status END,
        started_at = coalesce(started_at, clock_timestamp())
    WHERE id = $1
        AND (SELECT count(*) FROM held) = $10
        AND ($11 OR open_segments + open_chunks > $10)
    RETURNING id, status, true AS started, redrive, open_segments, open_chunks, chunks_total,
        items_total, budget_multiplier, failures, closed, merge
),
completed AS (
    UPDATE windlass_chunks c
    SET status = 'COMPLETED',
        cursor = d.cursor,
        read = d.read,
        processed = d.processed,
        skipped = d.skipped,
        dead = d.dead,
        conflicts = d.conflicts,
        marked = coalesce(d.marked, c.marked),
        lease_until = NULL,
        finished_at = clock_timestamp()
    FROM held d, job
    WHERE c.job_id = $1 AND c.number = d.number
)
SELECT * FROM job
