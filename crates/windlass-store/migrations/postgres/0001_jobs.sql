-- Jobs, their segments and chunks, and dead letters.
--
-- Job rows change with every chunk that ends, so the wide columns are kept out of line and no
-- counter is indexed: such an update stays on its page.
CREATE TABLE windlass_jobs (
    id               uuid PRIMARY KEY,
    root             uuid NOT NULL,
    redrive          boolean NOT NULL,
    job_type         text NOT NULL,
    submitter        text NOT NULL,
    idempotency_key  text,
    request          text NOT NULL,
    identity         text NOT NULL,
    definition       text NOT NULL,
    definition_hash  text NOT NULL,
    failures         text,
    priority         bigint NOT NULL,
    connection       text NOT NULL,
    handler          text,
    lease_ms         bigint NOT NULL,
    timeout_ms       bigint NOT NULL,
    status           text NOT NULL,
    error            text,
    grants           bigint NOT NULL DEFAULT 1,
    open_segments    bigint NOT NULL DEFAULT 0 CHECK (open_segments >= 0),
    open_chunks      bigint NOT NULL DEFAULT 0 CHECK (open_chunks >= 0),
    chunks_total     bigint NOT NULL DEFAULT 0,
    items_total      bigint NOT NULL DEFAULT 0,
    processed        bigint NOT NULL DEFAULT 0,
    skipped          bigint NOT NULL DEFAULT 0,
    dead             bigint NOT NULL DEFAULT 0,
    conflicts        bigint NOT NULL DEFAULT 0,
    completed        bigint NOT NULL DEFAULT 0,
    failed           bigint NOT NULL DEFAULT 0,
    cancelled        bigint NOT NULL DEFAULT 0,
    created_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_at       timestamptz,
    finished_at      timestamptz,
    ledger_pruned    boolean NOT NULL DEFAULT false
) WITH (fillfactor = 50, toast_tuple_target = 256);

-- By digest, since a key may be longer than an index entry can be.
CREATE UNIQUE INDEX windlass_jobs_idempotency
    ON windlass_jobs (job_type, submitter, md5(idempotency_key))
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX windlass_jobs_claim ON windlass_jobs (priority DESC, created_at, id)
    WHERE status IN ('QUEUED', 'PROCESSING');
CREATE INDEX windlass_jobs_cancelled ON windlass_jobs (id)
    WHERE status = 'CANCELLED' AND finished_at IS NULL;
CREATE INDEX windlass_jobs_newest ON windlass_jobs (created_at, id);
CREATE INDEX windlass_jobs_prunable ON windlass_jobs (finished_at)
    WHERE status = 'COMPLETED' AND NOT ledger_pruned;

CREATE TABLE windlass_segments (
    job_id        uuid NOT NULL REFERENCES windlass_jobs,
    number        bigint NOT NULL,
    status        text NOT NULL DEFAULT 'PENDING',
    epoch         bigint NOT NULL DEFAULT 0,
    state         text NOT NULL,
    key_range     text NOT NULL,
    attempts      bigint NOT NULL DEFAULT 0,
    losses        bigint NOT NULL DEFAULT 0,
    worker        text,
    error         text,
    available_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    lease_until   timestamptz,
    PRIMARY KEY (job_id, number)
);
CREATE INDEX windlass_segments_pending ON windlass_segments (job_id, number)
    WHERE status = 'PENDING';
CREATE INDEX windlass_segments_processing ON windlass_segments (job_id, number)
    WHERE status = 'PROCESSING';

CREATE TABLE windlass_chunks (
    job_id        uuid NOT NULL REFERENCES windlass_jobs,
    number        bigint NOT NULL,
    segment       bigint NOT NULL,
    status        text NOT NULL DEFAULT 'PENDING',
    epoch         bigint NOT NULL DEFAULT 0,
    key_set        text NOT NULL,
    items         bigint NOT NULL,
    cursor        text NOT NULL DEFAULT 'null',
    read          bigint NOT NULL DEFAULT 0,
    processed     bigint NOT NULL DEFAULT 0,
    skipped       bigint NOT NULL DEFAULT 0,
    dead          bigint NOT NULL DEFAULT 0,
    conflicts     bigint NOT NULL DEFAULT 0,
    attempts      bigint NOT NULL DEFAULT 0,
    losses        bigint NOT NULL DEFAULT 0,
    lost          boolean NOT NULL DEFAULT false,
    ending        boolean NOT NULL DEFAULT false,
    worker        text,
    error         text,
    available_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    lease_until   timestamptz,
    deadline      timestamptz,
    started_at    timestamptz,
    finished_at   timestamptz,
    PRIMARY KEY (job_id, number)
) WITH (fillfactor = 80);
-- None of these holds a lease or a count that heartbeats change, so a heartbeat touches no index.
CREATE INDEX windlass_chunks_pending ON windlass_chunks (job_id, number) WHERE status = 'PENDING';
CREATE INDEX windlass_chunks_processing ON windlass_chunks (job_id, number)
    WHERE status = 'PROCESSING';
CREATE INDEX windlass_chunks_failed ON windlass_chunks (job_id, number) WHERE status = 'FAILED';

CREATE TABLE windlass_dead_letters (
    id           uuid PRIMARY KEY,
    job_id       uuid NOT NULL REFERENCES windlass_jobs,
    job_type     text NOT NULL,
    chunk        bigint NOT NULL,
    key          text NOT NULL,
    record       text NOT NULL,
    error        text NOT NULL,
    context      text NOT NULL,
    attempts     bigint NOT NULL,
    status       text NOT NULL DEFAULT 'new',
    redrive_job  uuid,
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    updated_at   timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE UNIQUE INDEX windlass_dead_letters_item ON windlass_dead_letters (job_id, md5(key));
CREATE INDEX windlass_dead_letters_newest ON windlass_dead_letters (created_at, id);
CREATE INDEX windlass_dead_letters_redrive ON windlass_dead_letters (redrive_job)
    WHERE redrive_job IS NOT NULL;
