-- Read snapshots: one instant of the source, under which all chunks of a job are read. The transaction
-- that exported it is open in the process that holds it.
CREATE TABLE windlass_read_snapshots (
    job_id       uuid PRIMARY KEY REFERENCES windlass_jobs,
    -- Counts the snapshots of the job. Each chunk names the one that it is read under.
    number       bigint NOT NULL,
    -- The server that has it, its name there, and what identifies it.
    server       text NOT NULL,
    name         text NOT NULL,
    fingerprint  text NOT NULL,
    -- The worker that holds it, and how many snapshots were lost since the job was submitted or retried.
    worker       text NOT NULL,
    losses       bigint NOT NULL DEFAULT 0,
    taken_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- The year 1970 when it is known to be lost, NULL when the job does not need it any more.
    lease_until  timestamptz
);
CREATE INDEX windlass_read_snapshots_held ON windlass_read_snapshots (lease_until)
    WHERE lease_until IS NOT NULL;
