-- Sets the status of matching letters that are `new` and not being redriven.
-- Lock: the letters, in order of their ids.
-- Index: windlass_dead_letters_newest or _item.
WITH chosen AS MATERIALIZED (
    SELECT l.id
    FROM windlass_dead_letters l
    WHERE l.id IN (
        SELECT m.id
        FROM windlass_dead_letters m
        WHERE ($1::uuid[] IS NULL OR m.id = ANY ($1))
            AND ($2::uuid IS NULL OR m.job_id = $2)
            AND ($3::text[] IS NULL OR m.job_type = ANY ($3))
            AND ($4::text IS NULL OR m.error ILIKE $4 ESCAPE '\')
            AND ($5::text IS NULL OR m.status = $5)
            AND ($6::bigint IS NULL
                OR m.created_at <= clock_timestamp() - $6 * interval '1 millisecond')
            AND ($8::text IS NULL OR m.submitter = $8)
            AND ($9::text IS NULL OR m.fingerprint = $9)
            AND ($7::uuid IS NULL OR (m.created_at, m.id)
                < (SELECT b.created_at, b.id FROM windlass_dead_letters b WHERE b.id = $7))
            AND m.status = 'new'
            AND (m.redrive_job IS NULL OR EXISTS (
                SELECT 1
                FROM windlass_jobs j
                WHERE j.id = m.redrive_job
                AND j.status IN ('COMPLETED', 'FAILED', 'CANCELLED')
                AND j.open_segments + j.open_chunks = 0
            ))
        ORDER BY m.created_at DESC, m.id DESC
        LIMIT $10
    )
        AND l.status = 'new'
        AND (l.redrive_job IS NULL OR EXISTS (
            SELECT 1
            FROM windlass_jobs j
            WHERE j.id = l.redrive_job
                AND j.status IN ('COMPLETED', 'FAILED', 'CANCELLED')
                AND j.open_segments + j.open_chunks = 0
        ))
    ORDER BY l.id
    FOR UPDATE OF l
)
UPDATE windlass_dead_letters l
SET status = $11, updated_at = clock_timestamp()
FROM chosen c
WHERE l.id = c.id
