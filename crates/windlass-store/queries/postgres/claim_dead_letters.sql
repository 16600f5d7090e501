-- Gives matching letters of a job to a redrive: those that are `new` and not being redriven.
-- Letters that another redrive is claiming are skipped. The condition is checked again after
-- locking, so that no letter is claimed twice.
-- Lock: the claimed letters.
-- Index: windlass_dead_letters_item.
WITH chosen AS MATERIALIZED (
    SELECT l.id
    FROM windlass_dead_letters l
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
        AND job_id = $11
        AND status = 'new'
        AND (redrive_job IS NULL OR EXISTS (
            SELECT 1
            FROM windlass_jobs j
            WHERE j.id = l.redrive_job
                AND j.status IN ('COMPLETED', 'FAILED', 'CANCELLED')
                AND j.open_segments + j.open_chunks = 0
        ))
    ORDER BY created_at, id
    LIMIT $10
    FOR UPDATE SKIP LOCKED
)
UPDATE windlass_dead_letters l
SET redrive_job = $12, updated_at = clock_timestamp()
FROM chosen c
WHERE l.id = c.id
RETURNING l.key
