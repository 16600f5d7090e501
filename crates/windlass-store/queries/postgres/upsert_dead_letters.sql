-- Writes the dead letters of a chunk. A letter with the same content is not changed. Status and
-- redrive are never changed here.
-- Lock: the letters, in order of their keys, after the chunk.
-- Index: windlass_dead_letters_item.
INSERT INTO windlass_dead_letters AS l
    (id, job_id, job_type, chunk, key, record, error, fingerprint, context, attempts, submitter)
SELECT n.id, $1, $2, $3, n.key, n.record, n.error, n.fingerprint, n.context, n.attempts, $11
FROM unnest($4::uuid[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::bigint[])
    AS n (id, key, record, error, fingerprint, context, attempts)
ORDER BY n.key
ON CONFLICT (job_id, md5(key)) DO UPDATE
SET record = excluded.record,
    error = excluded.error,
    fingerprint = excluded.fingerprint,
    context = excluded.context,
    attempts = excluded.attempts,
    updated_at = clock_timestamp()
WHERE (l.record, l.error, l.context, l.attempts)
    IS DISTINCT FROM (excluded.record, excluded.error, excluded.context, excluded.attempts)
