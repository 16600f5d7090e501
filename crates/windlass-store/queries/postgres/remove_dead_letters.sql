-- Deletes up to $3 letters of a job type that have not changed for $2 milliseconds, unless their
-- job has not ended or a redrive owns them.
-- Lock: the letters, in order of their ids.
-- Index: none; old letters are few.
WITH chosen AS MATERIALIZED (
    SELECT l.id
    FROM windlass_dead_letters l
    WHERE l.job_type = $1
        AND l.updated_at <= clock_timestamp() - $2 * interval '1 millisecond'
        AND EXISTS (
            SELECT FROM windlass_jobs j WHERE j.id = l.job_id AND j.finished_at IS NOT NULL
        )
        AND NOT EXISTS (
            SELECT
            FROM windlass_jobs j
            WHERE j.id = l.redrive_job AND j.open_segments + j.open_chunks > 0
        )
    ORDER BY l.id
    LIMIT $3
    FOR UPDATE OF l
)
DELETE FROM windlass_dead_letters WHERE id IN (SELECT id FROM chosen)
