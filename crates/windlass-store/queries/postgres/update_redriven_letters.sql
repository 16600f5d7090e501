-- Updates the letters whose items failed again in a redrive, and releases them. A repeated call
-- finds no letter that names the redrive.
-- Lock: the letters, in order of their ids, after the chunk.
-- Index: windlass_dead_letters_redrive.
WITH again AS MATERIALIZED (
    SELECT l.id, n.record, n.error, n.fingerprint, n.context, n.attempts
    FROM unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::text[], $7::bigint[])
        AS n (key, record, error, fingerprint, context, attempts)
    JOIN windlass_dead_letters l ON l.key = n.key
    WHERE l.redrive_job = $1
    ORDER BY l.id
    FOR UPDATE OF l
)
UPDATE windlass_dead_letters l
SET record = a.record,
    error = a.error,
    fingerprint = a.fingerprint,
    context = a.context,
    attempts = l.attempts + a.attempts,
    redrive_job = NULL,
    updated_at = clock_timestamp()
FROM again a
WHERE l.id = a.id
