-- Sets the status of matching letters that are `new` and not being redriven.
-- Lock: the write transaction.
-- Index: windlass_dead_letters_newest or _item.
UPDATE windlass_dead_letters
SET status = ?11, updated_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE id IN (
    SELECT id
    FROM windlass_dead_letters
    WHERE (?1 IS NULL OR id IN (SELECT value FROM json_each(?1)))
        AND (?2 IS NULL OR job_id = ?2)
        AND (?3 IS NULL OR job_type IN (SELECT value FROM json_each(?3)))
        AND (?4 IS NULL OR error LIKE ?4 ESCAPE '\')
        AND (?5 IS NULL OR status = ?5)
        AND (?6 IS NULL OR created_at <= CAST(unixepoch('subsec') * 1000 AS INTEGER) - ?6)
        AND (?8 IS NULL OR submitter = ?8)
        AND (?9 IS NULL OR fingerprint = ?9)
        AND (?7 IS NULL OR (created_at, id)
            < (SELECT b.created_at, b.id FROM windlass_dead_letters b WHERE b.id = ?7))
        AND status = 'new'
        AND (redrive_job IS NULL OR EXISTS (
            SELECT 1
            FROM windlass_jobs j
            WHERE j.id = redrive_job
                AND j.status IN ('COMPLETED', 'FAILED', 'CANCELLED')
                AND j.open_segments + j.open_chunks = 0
        ))
    ORDER BY created_at DESC, id DESC
    LIMIT ?10
)
