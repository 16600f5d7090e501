-- Inserts a QUEUED job with its open segments and chunks: one segment, the PLAN, or the chunks of a complete plan. Returns
-- no row if the id or the idempotency key exists. Waits for a concurrent insert of the same key.
-- Lock: the new row.
-- Index: the primary key, windlass_jobs_idempotency.
INSERT INTO windlass_jobs (
    id, root, redrive, job_type, submitter, idempotency_key, request, identity, definition,
    definition_hash, failures, priority, connection, handler, lease_ms, timeout_ms,
    waits, on_failed, rules, merge, summary, status, open_segments, open_chunks, chunks_total, items_total
)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
    $19, $20, $21, 'QUEUED', $22, $23, $23, $24)
ON CONFLICT DO NOTHING
RETURNING id
