-- Lists dead letters, newest first.
-- Lock: none.
-- Index: windlass_dead_letters_newest, _item if a job is given, or _submitter.
SELECT id, job_id, job_type, chunk, key, record, error, fingerprint, context, attempts, status, redrive_job,
    created_at, updated_at
FROM windlass_dead_letters
WHERE ($1::uuid[] IS NULL OR id = ANY ($1))
    AND ($2::uuid IS NULL OR job_id = $2)
    AND ($3::text[] IS NULL OR job_type = ANY ($3))
    AND ($4::text IS NULL OR error ILIKE $4 ESCAPE '\')
    AND ($5::text IS NULL OR status = $5)
    AND ($6::bigint IS NULL OR created_at <= clock_timestamp() - $6 * interval '1 millisecond')
    AND ($8::text IS NULL OR submitter = $8)
    AND ($9::text IS NULL OR fingerprint = $9)
    AND ($7::uuid IS NULL OR (created_at, id)
        < (SELECT b.created_at, b.id FROM windlass_dead_letters b WHERE b.id = $7))
ORDER BY created_at DESC, id DESC
LIMIT $10
