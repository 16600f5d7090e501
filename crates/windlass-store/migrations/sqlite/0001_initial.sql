-- The initial schema. Ids are text, times are milliseconds since 1970-01-01 UTC, booleans are 0 or 1.

-- Jobs. `open_segments` and `open_chunks` count what has not ended: when both are zero, the job ends.
-- The sums (`processed` to `cancelled`) are written when the job ends; until then listings add up the
-- chunks.
CREATE TABLE windlass_jobs (
    id                 TEXT PRIMARY KEY,
    -- The job that the items belong to: the job itself, or the original of a redrive.
    root               TEXT NOT NULL,
    redrive            INTEGER NOT NULL,
    job_type           TEXT NOT NULL,
    submitter          TEXT NOT NULL,
    idempotency_key    TEXT,
    -- The request without its large lists, if it has any: a listing never reads megabytes.
    summary            TEXT,
    identity           TEXT NOT NULL,
    definition_hash    TEXT NOT NULL,
    -- The failure budget, and how many of them the job has: one, and one more for each resume or retry.
    failures           TEXT,
    budget_multiplier  INTEGER NOT NULL DEFAULT 1,
    -- When the budget was last exceeded.
    exceeded_at        INTEGER,
    priority           INTEGER NOT NULL,
    -- What a process needs to work the job.
    connection         TEXT NOT NULL,
    handler            TEXT,
    lease_ms           INTEGER NOT NULL,
    timeout_ms         INTEGER NOT NULL,
    status             TEXT NOT NULL,
    error              TEXT,
    -- How many parents the job waits for, and what happens when one of them fails.
    waits              INTEGER NOT NULL DEFAULT 0 CHECK (waits >= 0),
    on_failed          TEXT NOT NULL DEFAULT 'block',
    -- The dependencies that wait for this job, as JSON.
    rules              TEXT,
    -- NULL for a job without a merge, `due` before it, `begun` from then on.
    merge              TEXT,
    open_segments      INTEGER NOT NULL DEFAULT 0 CHECK (open_segments >= 0),
    open_chunks        INTEGER NOT NULL DEFAULT 0 CHECK (open_chunks >= 0),
    chunks_total       INTEGER NOT NULL DEFAULT 0,
    items_total        INTEGER NOT NULL DEFAULT 0,
    processed          INTEGER NOT NULL DEFAULT 0,
    skipped            INTEGER NOT NULL DEFAULT 0,
    dead               INTEGER NOT NULL DEFAULT 0,
    conflicts          INTEGER NOT NULL DEFAULT 0,
    completed          INTEGER NOT NULL DEFAULT 0,
    failed             INTEGER NOT NULL DEFAULT 0,
    cancelled          INTEGER NOT NULL DEFAULT 0,
    created_at         INTEGER NOT NULL,
    started_at         INTEGER,
    finished_at        INTEGER,
    -- How long it was paused, or failed before a retry, since it started; and since when it is paused.
    waited_ms          INTEGER NOT NULL DEFAULT 0,
    paused_at          INTEGER,
    -- Up to when `waited_ms` has the outages of its step and its database.
    accounted_at       INTEGER,
    -- Whether the output of a cancelled job must still be removed.
    discard            INTEGER NOT NULL DEFAULT 0,
    -- Whether the job can never run again: its chunks and its ledger may have been deleted.
    closed             INTEGER NOT NULL DEFAULT 0,
    -- The large columns are the last: SQLite reads everything before a column to find it.
    definition         TEXT NOT NULL,
    request            TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX windlass_jobs_idempotency
    ON windlass_jobs (job_type, submitter, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
-- Leasing walks this index in order. Jobs that wait for a parent are not in it.
CREATE INDEX windlass_jobs_leasable ON windlass_jobs (priority DESC, created_at, id)
    WHERE status IN ('QUEUED', 'PROCESSING') AND waits = 0;
CREATE INDEX windlass_jobs_waiting ON windlass_jobs (created_at, id)
    WHERE waits > 0 AND status = 'QUEUED';
CREATE INDEX windlass_jobs_cancelled ON windlass_jobs (id)
    WHERE status = 'CANCELLED' AND finished_at IS NULL;
CREATE INDEX windlass_jobs_paused ON windlass_jobs (id) WHERE status = 'PAUSED';
CREATE INDEX windlass_jobs_failed ON windlass_jobs (finished_at) WHERE status = 'FAILED';
CREATE INDEX windlass_jobs_exceeded ON windlass_jobs (exceeded_at) WHERE exceeded_at IS NOT NULL;
CREATE INDEX windlass_jobs_ended ON windlass_jobs (job_type, finished_at)
    WHERE finished_at IS NOT NULL;
CREATE INDEX windlass_jobs_discard ON windlass_jobs (id) WHERE discard;
CREATE INDEX windlass_jobs_redrives ON windlass_jobs (root) WHERE redrive;
-- Listings of all jobs, of a submitter, of a type and of a status.
CREATE INDEX windlass_jobs_newest ON windlass_jobs (created_at, id);
CREATE INDEX windlass_jobs_submitter ON windlass_jobs (submitter, created_at, id);
CREATE INDEX windlass_jobs_type ON windlass_jobs (job_type, created_at, id);
CREATE INDEX windlass_jobs_status ON windlass_jobs (status, created_at, id);

-- Segments: parts of the source that are cut into chunks independently. Number 0 is the plan, which
-- finds the others. The last one of a job with a merge is the merge.
CREATE TABLE windlass_segments (
    job_id        TEXT NOT NULL REFERENCES windlass_jobs,
    number        INTEGER NOT NULL,
    status        TEXT NOT NULL DEFAULT 'PENDING',
    -- The number of the last lease, and its random number. A store that was restored from a backup
    -- gives an epoch twice, but never with the same nonce: together they identify a lease forever.
    epoch         INTEGER NOT NULL DEFAULT 0,
    nonce         INTEGER NOT NULL DEFAULT 0,
    -- The pagination state and the key range, as JSON.
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

-- Chunks: disjoint sets of records, the unit of lease, retry and commit.
CREATE TABLE windlass_chunks (
    job_id        TEXT NOT NULL REFERENCES windlass_jobs,
    number        INTEGER NOT NULL,
    segment       INTEGER NOT NULL,
    status        TEXT NOT NULL DEFAULT 'PENDING',
    -- As for segments.
    epoch         INTEGER NOT NULL DEFAULT 0,
    nonce         INTEGER NOT NULL DEFAULT 0,
    key_set       TEXT NOT NULL,
    items         INTEGER NOT NULL,
    -- Copies of the ledger row, as of the last heartbeat.
    cursor        TEXT NOT NULL DEFAULT 'null',
    read          INTEGER NOT NULL DEFAULT 0,
    processed     INTEGER NOT NULL DEFAULT 0,
    skipped       INTEGER NOT NULL DEFAULT 0,
    dead          INTEGER NOT NULL DEFAULT 0,
    conflicts     INTEGER NOT NULL DEFAULT 0,
    -- Rows that have got the mark, for steps with one.
    marked        INTEGER,
    attempts      INTEGER NOT NULL DEFAULT 0,
    -- How many leases expired, and whether the last one did.
    losses        INTEGER NOT NULL DEFAULT 0,
    lost          INTEGER NOT NULL DEFAULT 0,
    -- Whether the chunk is leased only to be cancelled.
    ending        INTEGER NOT NULL DEFAULT 0,
    worker        TEXT,
    error         TEXT,
    available_at  INTEGER NOT NULL,
    lease_until   INTEGER,
    -- The end of the chunk's timeout. No lease is renewed beyond it.
    deadline      INTEGER,
    started_at    INTEGER,
    finished_at   INTEGER,
    PRIMARY KEY (job_id, number)
) STRICT, WITHOUT ROWID;
CREATE INDEX windlass_chunks_pending ON windlass_chunks (job_id, number) WHERE status = 'PENDING';
CREATE INDEX windlass_chunks_processing ON windlass_chunks (job_id, number)
    WHERE status = 'PROCESSING';
CREATE INDEX windlass_chunks_failed ON windlass_chunks (job_id, number) WHERE status = 'FAILED';
CREATE INDEX windlass_chunks_lost ON windlass_chunks (job_id, number) WHERE losses > 0;

-- Parts: the output of chunks. A large part is a file, which this row describes; a small one is in
-- `content`. Chunk -1 is the merged result.
CREATE TABLE windlass_parts (
    job_id        TEXT NOT NULL REFERENCES windlass_jobs,
    chunk         INTEGER NOT NULL,
    -- The lease that completed the chunk.
    epoch         INTEGER NOT NULL,
    nonce         INTEGER NOT NULL DEFAULT 0,
    name          TEXT,
    rows          INTEGER NOT NULL,
    bytes         INTEGER NOT NULL,
    sha256        TEXT NOT NULL,
    content_hash  TEXT NOT NULL,
    content       BLOB,
    PRIMARY KEY (job_id, chunk)
) STRICT;

-- Dead letters: items that failed for good. They belong to the original job, even if a redrive fails
-- again.
CREATE TABLE windlass_dead_letters (
    id           TEXT PRIMARY KEY,
    job_id       TEXT NOT NULL REFERENCES windlass_jobs,
    job_type     TEXT NOT NULL,
    submitter    TEXT NOT NULL,
    chunk        INTEGER NOT NULL,
    key          TEXT NOT NULL,
    record       TEXT NOT NULL,
    error        TEXT NOT NULL,
    -- The error without its values. Letters are grouped by it.
    fingerprint  TEXT NOT NULL,
    context      TEXT NOT NULL,
    attempts     INTEGER NOT NULL,
    status       TEXT NOT NULL DEFAULT 'new',
    redrive_job  TEXT,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX windlass_dead_letters_item ON windlass_dead_letters (job_id, key);
CREATE INDEX windlass_dead_letters_newest ON windlass_dead_letters (created_at, id);
CREATE INDEX windlass_dead_letters_submitter ON windlass_dead_letters (submitter, created_at, id);
CREATE INDEX windlass_dead_letters_new ON windlass_dead_letters (job_type) WHERE status = 'new';
CREATE INDEX windlass_dead_letters_redrive ON windlass_dead_letters (redrive_job)
    WHERE redrive_job IS NOT NULL;

-- Controls: settings that change at run time. The subject is a job type, a job's id,
-- `connection:NAME`, or `*` for everything.
CREATE TABLE windlass_controls (
    subject              TEXT PRIMARY KEY NOT NULL,
    stopped              INTEGER NOT NULL DEFAULT 0,
    suspended_until      INTEGER,
    reason               TEXT,
    -- The limits that an operator has set, and those of the definition.
    concurrency          INTEGER,
    rate                 INTEGER,
    default_concurrency  INTEGER,
    default_rate         INTEGER,
    -- The time that the rate limit has reserved up to, and when that was reserved. If the clock was set
    -- back since, the reservation is too far in the future.
    next_at              INTEGER,
    reserved_at          INTEGER
);

-- Outages: when a step or a database was unavailable, which does not count as working time of jobs. The
-- subject is a job type or `connection:NAME`. The current outage ends in the future.
CREATE TABLE windlass_outages (
    subject   TEXT NOT NULL,
    began_at  INTEGER NOT NULL,
    ended_at  INTEGER NOT NULL,
    PRIMARY KEY (subject, began_at)
) STRICT, WITHOUT ROWID;

-- Workers: processes that work chunks, as of their last heartbeat, and what they can work on.
CREATE TABLE windlass_workers (
    name         TEXT PRIMARY KEY NOT NULL,
    slots        INTEGER NOT NULL,
    started_at   INTEGER NOT NULL,
    seen_at      INTEGER NOT NULL,
    connections  TEXT,
    handlers     TEXT,
    only_job     TEXT,
    -- The host, the process id and the start time. A peer on the same host can tell whether it runs.
    process      TEXT
);

-- Connection shares: how many connections of `max_connections_total` each process may open. A process extends its
-- share while it lives.
CREATE TABLE windlass_connection_shares (
    connection   TEXT NOT NULL,
    process      TEXT NOT NULL,
    connections  INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    PRIMARY KEY (connection, process)
) STRICT, WITHOUT ROWID;

-- Schedules. The next firing time is stored, and each process moves it on only from the time that it
-- has handled, so that each time fires once.
CREATE TABLE windlass_schedules (
    job_type  TEXT PRIMARY KEY NOT NULL,
    spec      TEXT NOT NULL,
    next_at   INTEGER,
    paused    INTEGER NOT NULL DEFAULT 0,
    last_at   INTEGER,
    last_job  TEXT,
    error     TEXT
);

-- Links from a job to the jobs that it runs after. `waits` says whether it still waits for the parent.
CREATE TABLE windlass_links (
    child   TEXT NOT NULL REFERENCES windlass_jobs,
    parent  TEXT NOT NULL,
    waits   INTEGER NOT NULL,
    PRIMARY KEY (child, parent)
) WITHOUT ROWID, STRICT;
CREATE INDEX windlass_links_parent ON windlass_links (parent);

-- Join points: dependencies of which some parents have ended, for certain values, and others have not.
CREATE TABLE windlass_join_points (
    -- A hash of the dependency and the common values.
    key         TEXT PRIMARY KEY,
    rule        TEXT NOT NULL,
    agreed      TEXT NOT NULL,
    arrived     TEXT NOT NULL DEFAULT '{}',
    updated_at  INTEGER NOT NULL
) STRICT;

-- Triggers: jobs that are to be submitted because the parents of a dependency have ended.
CREATE TABLE windlass_triggers (
    id            TEXT PRIMARY KEY,
    request       TEXT NOT NULL,
    identity      TEXT NOT NULL,
    root          TEXT NOT NULL,
    attempts      INTEGER NOT NULL DEFAULT 0,
    error         TEXT,
    available_at  INTEGER NOT NULL
) STRICT;

-- Alerts, one row per occurrence. A condition (too many dead letters, no worker) has the same subject
-- for as long as it lasts. One that has not lasted long enough has no `raised_at`.
CREATE TABLE windlass_alerts (
    id               TEXT PRIMARY KEY NOT NULL,
    kind             TEXT NOT NULL,
    subject          TEXT NOT NULL,
    job_type         TEXT NOT NULL,
    job_id           TEXT,
    submitter        TEXT,
    message          TEXT NOT NULL,
    details          TEXT NOT NULL,
    threshold        INTEGER,
    -- When the condition began, and when it was last seen.
    since            INTEGER NOT NULL,
    seen_at          INTEGER NOT NULL,
    raised_at        INTEGER,
    -- When the condition ended, and what ended it.
    cleared_at       INTEGER,
    cleared_reason   TEXT,
    -- When a person has acknowledged it, and who.
    acknowledged_at  INTEGER,
    acknowledged_by  TEXT,
    delivery         TEXT NOT NULL,
    attempts         INTEGER NOT NULL DEFAULT 0,
    next_at          INTEGER NOT NULL,
    delivered_at     INTEGER,
    error            TEXT
) STRICT;
CREATE UNIQUE INDEX windlass_alerts_occurrence ON windlass_alerts (kind, subject);
CREATE INDEX windlass_alerts_newest ON windlass_alerts (raised_at, id);
CREATE INDEX windlass_alerts_pending ON windlass_alerts (next_at) WHERE delivery = 'pending';

-- The identity of this store: one row. A store that was restored from a backup keeps it.
CREATE TABLE windlass_store (id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
INSERT INTO windlass_store (id)
SELECT substr(h, 1, 8) || '-' || substr(h, 9, 4) || '-4' || substr(h, 14, 3) || '-a' || substr(h, 18, 3)
    || '-' || substr(h, 21, 12)
FROM (SELECT lower(hex(randomblob(16))) AS h);

-- Generations: how often a process began to work on each connection. Each increase is then recorded
-- beside the connection's ledger. A ledger with a higher generation than this table proves that the
-- store was restored from a backup.
CREATE TABLE windlass_generations (
    connection  TEXT PRIMARY KEY,
    generation  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- The signal counter: one row. SQLite has no NOTIFY, so waiting processes read this counter when the
-- file has changed.
CREATE TABLE windlass_signal (
    one    INTEGER PRIMARY KEY CHECK (one = 1),
    count  INTEGER NOT NULL
) STRICT;
INSERT INTO windlass_signal VALUES (1, 0);
