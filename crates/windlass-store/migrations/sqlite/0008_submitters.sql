-- Who sees only their own jobs and letters finds them by an index instead of among everybody's.
CREATE INDEX windlass_jobs_submitter ON windlass_jobs (submitter, created_at, id);

ALTER TABLE windlass_dead_letters ADD COLUMN submitter TEXT NOT NULL DEFAULT '';
UPDATE windlass_dead_letters
SET submitter = (SELECT j.submitter FROM windlass_jobs j WHERE j.id = windlass_dead_letters.job_id);
CREATE INDEX windlass_dead_letters_submitter ON windlass_dead_letters (submitter, created_at, id);
