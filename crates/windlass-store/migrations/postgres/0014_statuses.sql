-- Jobs of a status are listed and counted by an index, however many others there are. Every change of
-- a status writes to all indexes as it is, since others have it in their conditions.
DROP INDEX windlass_jobs_open;
CREATE INDEX windlass_jobs_status ON windlass_jobs (status, created_at, id);
