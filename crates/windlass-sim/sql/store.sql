-- Watches the store: only legal edges, and epochs that never decrease.
CREATE TABLE sim_edges (kind TEXT NOT NULL, old TEXT NOT NULL, new TEXT NOT NULL);

CREATE TRIGGER sim_job_edge AFTER UPDATE OF status ON windlass_jobs WHEN new.status <> old.status
BEGIN
    INSERT INTO sim_violations
    SELECT 'job ' || new.id || ' went from ' || old.status || ' to ' || new.status
    WHERE NOT EXISTS (SELECT 1 FROM sim_edges e WHERE e.kind = 'job' AND e.old = old.status AND e.new = new.status);
END;

CREATE TRIGGER sim_chunk_edge AFTER UPDATE OF status ON windlass_chunks WHEN new.status <> old.status
BEGIN
    INSERT INTO sim_violations
    SELECT 'chunk ' || new.number || ' of ' || new.job_id || ' went from ' || old.status || ' to ' || new.status
    WHERE NOT EXISTS (SELECT 1 FROM sim_edges e WHERE e.kind = 'chunk' AND e.old = old.status AND e.new = new.status);
END;

CREATE TRIGGER sim_chunk_epoch AFTER UPDATE OF epoch ON windlass_chunks WHEN new.epoch < old.epoch
BEGIN
    INSERT INTO sim_violations
    VALUES ('the epoch of chunk ' || new.number || ' of ' || new.job_id || ' decreased to ' || new.epoch);
END;
