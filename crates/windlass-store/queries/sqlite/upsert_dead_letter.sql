-- Writes a dead letter of a chunk. A letter with the same content is not changed. Status and
-- redrive are never changed here.
-- Lock: the write transaction.
-- Index: windlass_dead_letters_item.
INSERT INTO windlass_dead_letters
    (job_id, job_type, chunk, id, key, record, error, fingerprint, context, attempts, submitter,
        created_at, updated_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, CAST(unixepoch('subsec') * 1000 AS INTEGER), CAST(unixepoch('subsec') * 1000 AS INTEGER))
ON CONFLICT (job_id, key) DO UPDATE
SET record = excluded.record,
    error = excluded.error,
    fingerprint = excluded.fingerprint,
    context = excluded.context,
    attempts = excluded.attempts,
    updated_at = excluded.updated_at
WHERE (record, error, context, attempts)
    IS NOT (excluded.record, excluded.error, excluded.context, excluded.attempts)
