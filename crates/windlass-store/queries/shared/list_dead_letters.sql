-- Lists dead letters, newest first.
-- Lock: none.
-- Index: windlass_dead_letters_newest, _item if a job is given, or _submitter.
SELECT id, job_id, job_type, chunk, key, record, error, fingerprint, context, attempts, status, redrive_job,
    created_at, updated_at
FROM windlass_dead_letters
WHERE {filter}
ORDER BY created_at DESC, id DESC
LIMIT $10
