-- Chunks that were never claimed are taken in the order of their numbers, so that a claim can begin
-- where the last one ended: the entries before it are dead, and while somebody's long transaction is
-- open nobody can clear them away. Chunks that wait to be claimed again are few and apart.
DROP INDEX windlass_chunks_pending;
CREATE INDEX windlass_chunks_fresh ON windlass_chunks (job_id, number)
    WHERE status = 'PENDING' AND epoch = 0;
CREATE INDEX windlass_chunks_again ON windlass_chunks (job_id, number)
    WHERE status = 'PENDING' AND epoch > 0;

-- By its statistics the planner would take a job that came in since for one of hardly any chunks,
-- and walk through all of them to find a few by their numbers. Without, it looks them up.
ALTER TABLE windlass_chunks ALTER COLUMN job_id SET STATISTICS 0;
