-- Records every commit to a ledger row.
CREATE TRIGGER sim_ledger AFTER UPDATE OF commits ON windlass_ledger WHEN new.commits > old.commits
BEGIN
    INSERT INTO sim_commits VALUES (new.job_id, new.chunk, new.epoch);
END;
