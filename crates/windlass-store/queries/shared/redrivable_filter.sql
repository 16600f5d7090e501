-- Letters that can be redriven or marked: they are `new`, and no redrive that has not ended owns them.
-- The condition replaces the placeholder `redrivable` of other statements.
-- Lock: that of the statement.
-- Index: that of the statement; the primary key of the jobs.
status = 'new'
AND (redrive_job IS NULL OR EXISTS (
    SELECT 1
    FROM windlass_jobs j
    WHERE j.id = redrive_job
        AND j.status IN ('COMPLETED', 'FAILED', 'CANCELLED')
        AND j.open_segments + j.open_chunks = 0
))
