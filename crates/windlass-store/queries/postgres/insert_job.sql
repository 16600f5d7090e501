-- Inserts a QUEUED job with its segments and chunks: one open segment, the PLAN, or those of a complete plan. Stores the
-- limits of the job type's definition, as of its newest job, if they have changed. Inserts nothing and returns no row if the
-- id or the idempotency key exists. Waits for a concurrent insert of the same key.
-- Lock: the new rows; the control row, only if its limits change.
-- Index: the primary keys, windlass_jobs_idempotency.
WITH job AS (
    INSERT INTO windlass_jobs (
        id, root, redrive, job_type, submitter, idempotency_key, request, identity, definition,
        definition_hash, failures, priority, connection, handler, lease_ms, timeout_ms,
        waits, on_failed, rules, merge, summary, status, open_segments, open_chunks, chunks_total, items_total
    )
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
        $19, $20, $21, 'QUEUED', $22, $23, $23, $24)
    ON CONFLICT DO NOTHING
    RETURNING id, job_type
),
limits AS (
    INSERT INTO windlass_controls (subject, default_concurrency, default_rate)
    SELECT job.job_type, $25, $26
    FROM job LEFT JOIN windlass_controls c ON c.subject = job.job_type
    WHERE c.default_concurrency IS DISTINCT FROM $25 OR c.default_rate IS DISTINCT FROM $26
    ON CONFLICT (subject) DO UPDATE
    SET default_concurrency = excluded.default_concurrency, default_rate = excluded.default_rate
),
segments AS (
    INSERT INTO windlass_segments (job_id, number, state, key_range, status)
    SELECT job.id, s.place - 1, s.state, s.key_range, $29
    FROM job, unnest($27::text[], $28::text[]) WITH ORDINALITY AS s (state, key_range, place)
),
chunks AS (
    INSERT INTO windlass_chunks (job_id, segment, number, key_set, items)
    SELECT job.id, $30, c.place - 1, c.key_set, c.items
    FROM job, unnest($31::text[], $32::bigint[]) WITH ORDINALITY AS c (key_set, items, place)
)
SELECT id FROM job
