-- What operators, definitions and failing steps say of a subject: a job type, one job by its id, or
-- `*` for everything. Rows of `windlass_workers` are the processes that work, as they last said.
CREATE TABLE windlass_controls (
    subject          TEXT PRIMARY KEY NOT NULL,
    stopped          INTEGER NOT NULL DEFAULT 0,
    suspended_until       INTEGER,
    reason           TEXT,
    concurrency          INTEGER,
    rate             INTEGER,
    default_concurrency  INTEGER,
    default_rate     INTEGER,
    next_at          INTEGER
);

CREATE TABLE windlass_workers (
    name        TEXT PRIMARY KEY NOT NULL,
    slots       INTEGER NOT NULL,
    started_at  INTEGER NOT NULL,
    seen_at     INTEGER NOT NULL
);
