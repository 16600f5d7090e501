-- What operators, definitions and failing steps say of a subject: a job type, one job by its id, or
-- `*` for everything. Rows of `windlass_workers` are the processes that work, as they last said.
CREATE TABLE windlass_controls (
    subject          text PRIMARY KEY,
    stopped          boolean NOT NULL DEFAULT false,
    suspended_until       timestamptz,
    reason           text,
    concurrency          bigint,
    rate             bigint,
    default_concurrency  bigint,
    default_rate     bigint,
    next_at          timestamptz
);

CREATE TABLE windlass_workers (
    name        text PRIMARY KEY,
    slots       bigint NOT NULL,
    started_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at     timestamptz NOT NULL DEFAULT clock_timestamp()
) WITH (fillfactor = 50);
