-- Jobs, their segments and chunks, and dead letters. Ids are text, times milliseconds since 1970.
CREATE TABLE windlass_jobs (
    id               TEXT PRIMARY KEY,
    root             TEXT NOT NULL,
    redrive          INTEGER NOT NULL,
    job_type         TEXT NOT NULL,
    submitter        TEXT NOT NULL,
    idempotency_key  TEXT,
    request          TEXT NOT NULL,
    identity         TEXT NOT NULL,
    definition       TEXT NOT NULL,
    definition_hash  TEXT NOT NULL,
    failures         TEXT,
    priority         INTEGER NOT NULL,
    connection       TEXT NOT NULL,
    handler          TEXT,
    lease_ms         INTEGER NOT NULL,
    timeout_ms       INTEGER NOT NULL,
    status           TEXT NOT NULL,
    error            TEXT,
    grants           INTEGER NOT NULL DEFAULT 1,
    open_segments    INTEGER NOT NULL DEFAULT 0 CHECK (open_segments >= 0),
    open_chunks      INTEGER NOT NULL DEFAULT 0 CHECK (open_chunks >= 0),
    chunks_total     INTEGER NOT NULL DEFAULT 0,
    items_total      INTEGER NOT NULL DEFAULT 0,
    processed        INTEGER NOT NULL DEFAULT 0,
    skipped          INTEGER NOT NULL DEFAULT 0,
    dead             INTEGER NOT NULL DEFAULT 0,
    conflicts        INTEGER NOT NULL DEFAULT 0,
    completed        INTEGER NOT NULL DEFAULT 0,
    failed           INTEGER NOT NULL DEFAULT 0,
    cancelled        INTEGER NOT NULL DEFAULT 0,
    created_at       INTEGER NOT NULL,
    started_at       INTEGER,
    finished_at      INTEGER,
    ledger_pruned    INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE UNIQUE INDEX windlass_jobs_idempotency
    ON windlass_jobs (job_type, submitter, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX windlass_jobs_claim ON windlass_jobs (priority DESC, created_at, id)
    WHERE status IN ('QUEUED', 'PROCESSING');
CREATE INDEX windlass_jobs_cancelled ON windlass_jobs (id)
    WHERE status = 'CANCELLED' AND finished_at IS NULL;
CREATE INDEX windlass_jobs_newest ON windlass_jobs (created_at, id);
CREATE INDEX windlass_jobs_prunable ON windlass_jobs (finished_at)
    WHERE status = 'COMPLETED' AND ledger_pruned = 0;

CREATE TABLE windlass_segments (
    job_id        TEXT NOT NULL REFERENCES windlass_jobs,
    number        INTEGER NOT NULL,
    status        TEXT NOT NULL DEFAULT 'PENDING',
    epoch         INTEGER NOT NULL DEFAULT 0,
    state         TEXT NOT NULL,
    key_range     TEXT NOT NULL,
    attempts      INTEGER NOT NULL DEFAULT 0,
    losses        INTEGER NOT NULL DEFAULT 0,
    worker        TEXT,
    error         TEXT,
    available_at  INTEGER NOT NULL,
    lease_until   INTEGER,
    PRIMARY KEY (job_id, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX windlass_segments_pending ON windlass_segments (job_id, number)
    WHERE status = 'PENDING';
CREATE INDEX windlass_segments_processing ON windlass_segments (job_id, number)
    WHERE status = 'PROCESSING';

CREATE TABLE windlass_chunks (
    job_id        TEXT NOT NULL REFERENCES windlass_jobs,
    number        INTEGER NOT NULL,
    segment       INTEGER NOT NULL,
    status        TEXT NOT NULL DEFAULT 'PENDING',
    epoch         INTEGER NOT NULL DEFAULT 0,
    key_set        TEXT NOT NULL,
    items         INTEGER NOT NULL,
    cursor        TEXT NOT NULL DEFAULT 'null',
    read          INTEGER NOT NULL DEFAULT 0,
    processed     INTEGER NOT NULL DEFAULT 0,
    skipped       INTEGER NOT NULL DEFAULT 0,
    dead          INTEGER NOT NULL DEFAULT 0,
    conflicts     INTEGER NOT NULL DEFAULT 0,
    attempts      INTEGER NOT NULL DEFAULT 0,
    losses        INTEGER NOT NULL DEFAULT 0,
    lost          INTEGER NOT NULL DEFAULT 0,
    ending        INTEGER NOT NULL DEFAULT 0,
    worker        TEXT,
    error         TEXT,
    available_at  INTEGER NOT NULL,
    lease_until   INTEGER,
    deadline      INTEGER,
    started_at    INTEGER,
    finished_at   INTEGER,
    PRIMARY KEY (job_id, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX windlass_chunks_pending ON windlass_chunks (job_id, number) WHERE status = 'PENDING';
CREATE INDEX windlass_chunks_processing ON windlass_chunks (job_id, number)
    WHERE status = 'PROCESSING';
CREATE INDEX windlass_chunks_failed ON windlass_chunks (job_id, number) WHERE status = 'FAILED';

CREATE TABLE windlass_dead_letters (
    id           TEXT PRIMARY KEY,
    job_id       TEXT NOT NULL REFERENCES windlass_jobs,
    job_type     TEXT NOT NULL,
    chunk        INTEGER NOT NULL,
    key          TEXT NOT NULL,
    record       TEXT NOT NULL,
    error        TEXT NOT NULL,
    context      TEXT NOT NULL,
    attempts     INTEGER NOT NULL,
    status       TEXT NOT NULL DEFAULT 'new',
    redrive_job  TEXT,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX windlass_dead_letters_item ON windlass_dead_letters (job_id, key);
CREATE INDEX windlass_dead_letters_newest ON windlass_dead_letters (created_at, id);
CREATE INDEX windlass_dead_letters_redrive ON windlass_dead_letters (redrive_job)
    WHERE redrive_job IS NOT NULL;

-- SQLite has no NOTIFY: this counter moves where PostgreSQL would notify, and waiting processes
-- look at it when the file has changed.
CREATE TABLE windlass_signal (
    one    INTEGER PRIMARY KEY CHECK (one = 1),
    count  INTEGER NOT NULL
) STRICT;
INSERT INTO windlass_signal VALUES (1, 0);
