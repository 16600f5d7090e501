-- Whether a job can be planned or processed, or a dependent job is to be submitted.
-- Lock: none.
-- Index: windlass_jobs_leasable; the triggers are few.
SELECT
    EXISTS (SELECT 1 FROM windlass_jobs WHERE status IN ('QUEUED', 'PROCESSING') AND waits = 0)
    OR EXISTS (SELECT 1 FROM windlass_triggers) AS is_open
