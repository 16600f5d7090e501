-- Jobs that come after others. A link says who waits for whom; a join_point keeps the parents of a rule
-- that have ended for some values; a trigger is a job that is to be submitted since all of them have.
ALTER TABLE windlass_jobs ADD COLUMN waits INTEGER NOT NULL DEFAULT 0 CHECK (waits >= 0);
ALTER TABLE windlass_jobs ADD COLUMN on_failed TEXT NOT NULL DEFAULT 'block';
ALTER TABLE windlass_jobs ADD COLUMN rules TEXT;

-- What waits for another job is not in the way of a claim.
DROP INDEX windlass_jobs_claim;
CREATE INDEX windlass_jobs_claim ON windlass_jobs (priority DESC, created_at, id)
    WHERE status IN ('QUEUED', 'PROCESSING') AND waits = 0;

CREATE TABLE windlass_links (
    child   TEXT NOT NULL REFERENCES windlass_jobs,
    parent  TEXT NOT NULL,
    waits   INTEGER NOT NULL,
    PRIMARY KEY (child, parent)
) WITHOUT ROWID, STRICT;
CREATE INDEX windlass_links_parent ON windlass_links (parent);

CREATE TABLE windlass_join_points (
    key         TEXT PRIMARY KEY,
    rule        TEXT NOT NULL,
    agreed      TEXT NOT NULL,
    arrived     TEXT NOT NULL DEFAULT '{}',
    updated_at  INTEGER NOT NULL
) STRICT;

CREATE TABLE windlass_triggers (
    id            TEXT PRIMARY KEY,
    request       TEXT NOT NULL,
    identity      TEXT NOT NULL,
    root          TEXT NOT NULL,
    attempts      INTEGER NOT NULL DEFAULT 0,
    error         TEXT,
    available_at  INTEGER NOT NULL
) STRICT;

-- What waits, for those who look at everything that is open.
CREATE INDEX windlass_jobs_waiting ON windlass_jobs (created_at, id)
    WHERE waits > 0 AND status = 'QUEUED';
