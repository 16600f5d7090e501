-- Deletes up to ?3 letters of a job type that have not changed for ?2 milliseconds, unless their
-- job has not ended or a redrive owns them.
-- Lock: the write transaction.
-- Index: none; old letters are few.
DELETE FROM windlass_dead_letters
WHERE id IN (
    SELECT l.id
    FROM windlass_dead_letters l
    WHERE l.job_type = ?1
        AND l.updated_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER) - ?2
        AND EXISTS (
            SELECT 1 FROM windlass_jobs j WHERE j.id = l.job_id AND j.finished_at IS NOT NULL
        )
        AND NOT EXISTS (
            SELECT 1
            FROM windlass_jobs j
            WHERE j.id = l.redrive_job AND j.open_segments + j.open_chunks > 0
        )
    LIMIT ?3
)
