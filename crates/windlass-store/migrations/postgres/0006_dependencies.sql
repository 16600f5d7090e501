-- Jobs that come after others. A link says who waits for whom; a join_point keeps the parents of a rule
-- that have ended for some values; a trigger is a job that is to be submitted since all of them have.
ALTER TABLE windlass_jobs
    ADD COLUMN waits bigint NOT NULL DEFAULT 0 CHECK (waits >= 0),
    ADD COLUMN on_failed text NOT NULL DEFAULT 'block',
    ADD COLUMN rules text;

-- What waits for another job is not in the way of a claim.
DROP INDEX windlass_jobs_claim;
CREATE INDEX windlass_jobs_claim ON windlass_jobs (priority DESC, created_at, id)
    WHERE status IN ('QUEUED', 'PROCESSING') AND waits = 0;

CREATE TABLE windlass_links (
    child   uuid NOT NULL REFERENCES windlass_jobs,
    parent  uuid NOT NULL,
    waits   boolean NOT NULL,
    PRIMARY KEY (child, parent)
);
CREATE INDEX windlass_links_parent ON windlass_links (parent);

CREATE TABLE windlass_join_points (
    key         text PRIMARY KEY,
    rule        text NOT NULL,
    agreed      text NOT NULL,
    arrived     text NOT NULL DEFAULT '{}',
    updated_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);

CREATE TABLE windlass_triggers (
    id            uuid PRIMARY KEY,
    request       text NOT NULL,
    identity      text NOT NULL,
    root          uuid NOT NULL,
    attempts      bigint NOT NULL DEFAULT 0,
    error         text,
    available_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- What waits, for those who look at everything that is open.
CREATE INDEX windlass_jobs_waiting ON windlass_jobs (created_at, id)
    WHERE waits > 0 AND status = 'QUEUED';
