-- The initial schema.

-- Jobs. `open_segments` and `open_chunks` count what has not ended: when both are zero, the job ends.
-- The sums (`processed` to `cancelled`) are written when the job ends; until then listings add up the
-- chunks.
--
-- Every chunk that ends updates its job's row. So wide columns are stored out of line, no counter is
-- indexed, and pages keep free space: such an update stays on its page and touches no index.
CREATE TABLE windlass_jobs (
    id                 uuid PRIMARY KEY,
    -- The job that the items belong to: the job itself, or the original of a redrive.
    root               uuid NOT NULL,
    redrive            boolean NOT NULL,
    job_type           text NOT NULL,
    submitter          text NOT NULL,
    idempotency_key    text,
    request            text NOT NULL,
    -- The request without its large lists, if it has any: a listing never reads megabytes.
    summary            text,
    identity           text NOT NULL,
    definition         text NOT NULL,
    definition_hash    text NOT NULL,
    -- The failure budget, and how many of them the job has: one, and one more for each resume or retry.
    failures           text,
    budget_multiplier  bigint NOT NULL DEFAULT 1,
    -- When the budget was last exceeded.
    exceeded_at        timestamptz,
    priority           bigint NOT NULL,
    -- What a process needs to work the job.
    connection         text NOT NULL,
    handler            text,
    lease_ms           bigint NOT NULL,
    timeout_ms         bigint NOT NULL,
    status             text NOT NULL,
    error              text,
    -- How many parents the job waits for, and what happens when one of them fails.
    waits              bigint NOT NULL DEFAULT 0 CHECK (waits >= 0),
    on_failed          text NOT NULL DEFAULT 'block',
    -- The dependencies that wait for this job, as JSON.
    rules              text,
    -- NULL for a job without a merge, `due` before it, `begun` from then on.
    merge              text,
    open_segments      bigint NOT NULL DEFAULT 0 CHECK (open_segments >= 0),
    open_chunks        bigint NOT NULL DEFAULT 0 CHECK (open_chunks >= 0),
    chunks_total       bigint NOT NULL DEFAULT 0,
    items_total        bigint NOT NULL DEFAULT 0,
    processed          bigint NOT NULL DEFAULT 0,
    skipped            bigint NOT NULL DEFAULT 0,
    dead               bigint NOT NULL DEFAULT 0,
    conflicts          bigint NOT NULL DEFAULT 0,
    completed          bigint NOT NULL DEFAULT 0,
    failed             bigint NOT NULL DEFAULT 0,
    cancelled          bigint NOT NULL DEFAULT 0,
    created_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    started_at         timestamptz,
    finished_at        timestamptz,
    -- How long it was paused, or failed before a retry, since it started; and since when it is paused.
    waited_ms          bigint NOT NULL DEFAULT 0,
    paused_at          timestamptz,
    -- Up to when `waited_ms` has the outages of its step and its database.
    accounted_at       timestamptz,
    -- Whether the output of a cancelled job must still be removed.
    discard            boolean NOT NULL DEFAULT false,
    -- Whether the job can never run again: its chunks and its ledger may have been deleted.
    closed             boolean NOT NULL DEFAULT false
) WITH (fillfactor = 50, toast_tuple_target = 256);
-- By hash, since a key may be longer than an index entry can be.
CREATE UNIQUE INDEX windlass_jobs_idempotency
    ON windlass_jobs (job_type, submitter, md5(idempotency_key))
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
    job_id        uuid NOT NULL REFERENCES windlass_jobs,
    number        bigint NOT NULL,
    status        text NOT NULL DEFAULT 'PENDING',
    -- The number of the last lease, and its random number. A store that was restored from a backup
    -- gives an epoch twice, but never with the same nonce: together they identify a lease forever.
    epoch         bigint NOT NULL DEFAULT 0,
    nonce         bigint NOT NULL DEFAULT 0,
    -- The pagination state and the key range, as JSON.
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

-- Chunks: disjoint sets of records, the unit of lease, retry and commit. No index contains a column that
-- heartbeats change, so a heartbeat touches no index.
CREATE TABLE windlass_chunks (
    job_id        uuid NOT NULL REFERENCES windlass_jobs,
    number        bigint NOT NULL,
    segment       bigint NOT NULL,
    status        text NOT NULL DEFAULT 'PENDING',
    -- As for segments.
    epoch         bigint NOT NULL DEFAULT 0,
    nonce         bigint NOT NULL DEFAULT 0,
    key_set       text NOT NULL,
    items         bigint NOT NULL,
    -- Copies of the ledger row, as of the last heartbeat.
    cursor        text NOT NULL DEFAULT 'null',
    read          bigint NOT NULL DEFAULT 0,
    processed     bigint NOT NULL DEFAULT 0,
    skipped       bigint NOT NULL DEFAULT 0,
    dead          bigint NOT NULL DEFAULT 0,
    conflicts     bigint NOT NULL DEFAULT 0,
    -- Rows that have got the mark, for steps with one.
    marked        bigint,
    attempts      bigint NOT NULL DEFAULT 0,
    -- How many leases expired, and whether the last one did.
    losses        bigint NOT NULL DEFAULT 0,
    lost          boolean NOT NULL DEFAULT false,
    -- Whether the chunk is leased only to be cancelled.
    ending        boolean NOT NULL DEFAULT false,
    worker        text,
    error         text,
    available_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    lease_until   timestamptz,
    -- The end of the chunk's timeout. No lease is renewed beyond it.
    deadline      timestamptz,
    started_at    timestamptz,
    finished_at   timestamptz,
    PRIMARY KEY (job_id, number)
) WITH (fillfactor = 80);
-- Chunks that were never leased are leased in order of their numbers, so leasing can begin where the
-- last one ended. The index entries before it are dead, and vacuum cannot remove them while a long
-- transaction is open. Chunks that wait to be leased again are few, and have an index of their own.
CREATE INDEX windlass_chunks_fresh ON windlass_chunks (job_id, number)
    WHERE status = 'PENDING' AND epoch = 0;
CREATE INDEX windlass_chunks_again ON windlass_chunks (job_id, number)
    WHERE status = 'PENDING' AND epoch > 0;
CREATE INDEX windlass_chunks_processing ON windlass_chunks (job_id, number)
    WHERE status = 'PROCESSING';
CREATE INDEX windlass_chunks_failed ON windlass_chunks (job_id, number) WHERE status = 'FAILED';
CREATE INDEX windlass_chunks_lost ON windlass_chunks (job_id, number) WHERE losses > 0;
-- With statistics, the planner would assume that a job which is newer than them has hardly any chunks,
-- and would scan all of them to find a few by number. Without, it looks them up by the primary key.
ALTER TABLE windlass_chunks ALTER COLUMN job_id SET STATISTICS 0;

-- Parts: the output of chunks. A large part is a file, which this row describes; a small one is in
-- `content`. Chunk -1 is the merged result.
CREATE TABLE windlass_parts (
    job_id        uuid NOT NULL REFERENCES windlass_jobs,
    chunk         bigint NOT NULL,
    -- The lease that completed the chunk.
    epoch         bigint NOT NULL,
    nonce         bigint NOT NULL DEFAULT 0,
    name          text,
    rows          bigint NOT NULL,
    bytes         bigint NOT NULL,
    sha256        text NOT NULL,
    content_hash  text NOT NULL,
    content       bytea,
    PRIMARY KEY (job_id, chunk)
);

-- Dead letters: items that failed for good. They belong to the original job, even if a redrive fails
-- again.
CREATE TABLE windlass_dead_letters (
    id           uuid PRIMARY KEY,
    job_id       uuid NOT NULL REFERENCES windlass_jobs,
    job_type     text NOT NULL,
    submitter    text NOT NULL,
    chunk        bigint NOT NULL,
    key          text NOT NULL,
    record       text NOT NULL,
    error        text NOT NULL,
    -- The error without its values. Letters are grouped by it.
    fingerprint  text NOT NULL,
    context      text NOT NULL,
    attempts     bigint NOT NULL,
    status       text NOT NULL DEFAULT 'new',
    redrive_job  uuid,
    created_at   timestamptz NOT NULL DEFAULT statement_timestamp(),
    updated_at   timestamptz NOT NULL DEFAULT statement_timestamp()
);
CREATE UNIQUE INDEX windlass_dead_letters_item ON windlass_dead_letters (job_id, md5(key));
CREATE INDEX windlass_dead_letters_newest ON windlass_dead_letters (created_at, id);
CREATE INDEX windlass_dead_letters_submitter ON windlass_dead_letters (submitter, created_at, id);
CREATE INDEX windlass_dead_letters_new ON windlass_dead_letters (job_type) WHERE status = 'new';
CREATE INDEX windlass_dead_letters_redrive ON windlass_dead_letters (redrive_job)
    WHERE redrive_job IS NOT NULL;

-- Controls: settings that change at run time. The subject is a job type, a job's id,
-- `connection:NAME`, or `*` for everything.
CREATE TABLE windlass_controls (
    subject              text PRIMARY KEY,
    stopped              boolean NOT NULL DEFAULT false,
    suspended_until      timestamptz,
    reason               text,
    -- The limits that an operator has set, and those of the definition.
    concurrency          bigint,
    rate                 bigint,
    default_concurrency  bigint,
    default_rate         bigint,
    -- The time that the rate limit has reserved up to, and when that was reserved. If the clock was set
    -- back since, the reservation is too far in the future.
    next_at              timestamptz,
    reserved_at          timestamptz
);

-- Outages: when a step or a database was unavailable, which does not count as working time of jobs. The
-- subject is a job type or `connection:NAME`. The current outage ends in the future.
CREATE TABLE windlass_outages (
    subject   text NOT NULL,
    began_at  timestamptz NOT NULL,
    ended_at  timestamptz NOT NULL,
    PRIMARY KEY (subject, began_at)
);

-- Workers: processes that work chunks, as of their last heartbeat, and what they can work on.
CREATE TABLE windlass_workers (
    name         text PRIMARY KEY,
    slots        bigint NOT NULL,
    started_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    seen_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    connections  text[],
    handlers     text[],
    only_job     uuid,
    -- The host, the process id and the start time. A peer on the same host can tell whether it runs.
    process      text
) WITH (fillfactor = 50);

-- Connection shares: how many connections of `max_connections_total` each process may open. A process extends its
-- share while it lives.
CREATE TABLE windlass_connection_shares (
    connection   text NOT NULL,
    process      text NOT NULL,
    connections  bigint NOT NULL,
    expires_at   timestamptz NOT NULL,
    PRIMARY KEY (connection, process)
) WITH (fillfactor = 50);

-- Schedules. The next firing time is stored, and each process moves it on only from the time that it
-- has handled, so that each time fires once.
CREATE TABLE windlass_schedules (
    job_type  text PRIMARY KEY,
    spec      text NOT NULL,
    next_at   timestamptz,
    paused    boolean NOT NULL DEFAULT false,
    last_at   timestamptz,
    last_job  uuid,
    error     text
);

-- Links from a job to the jobs that it runs after. `waits` says whether it still waits for the parent.
CREATE TABLE windlass_links (
    child   uuid NOT NULL REFERENCES windlass_jobs,
    parent  uuid NOT NULL,
    waits   boolean NOT NULL,
    PRIMARY KEY (child, parent)
);
CREATE INDEX windlass_links_parent ON windlass_links (parent);

-- Join points: dependencies of which some parents have ended, for certain values, and others have not.
CREATE TABLE windlass_join_points (
    -- A hash of the dependency and the common values.
    key         text PRIMARY KEY,
    rule        text NOT NULL,
    agreed      text NOT NULL,
    arrived     text NOT NULL DEFAULT '{}',
    updated_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Triggers: jobs that are to be submitted because the parents of a dependency have ended.
CREATE TABLE windlass_triggers (
    id            uuid PRIMARY KEY,
    request       text NOT NULL,
    identity      text NOT NULL,
    root          uuid NOT NULL,
    attempts      bigint NOT NULL DEFAULT 0,
    error         text,
    available_at  timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Alerts, one row per occurrence. A condition (too many dead letters, no worker) has the same subject
-- for as long as it lasts. One that has not lasted long enough has no `raised_at`.
CREATE TABLE windlass_alerts (
    id               uuid PRIMARY KEY,
    kind             text NOT NULL,
    subject          text NOT NULL,
    job_type         text NOT NULL,
    job_id           uuid,
    submitter        text,
    message          text NOT NULL,
    details          text NOT NULL,
    threshold        bigint,
    -- When the condition began, and when it was last seen.
    since            timestamptz NOT NULL,
    seen_at          timestamptz NOT NULL,
    raised_at        timestamptz,
    -- When the condition ended, and what ended it.
    cleared_at       timestamptz,
    cleared_reason   text,
    -- When a person has acknowledged it, and who.
    acknowledged_at  timestamptz,
    acknowledged_by  text,
    delivery         text NOT NULL,
    attempts         bigint NOT NULL DEFAULT 0,
    next_at          timestamptz NOT NULL,
    delivered_at     timestamptz,
    error            text
);
CREATE UNIQUE INDEX windlass_alerts_occurrence ON windlass_alerts (kind, subject);
CREATE INDEX windlass_alerts_newest ON windlass_alerts (raised_at, id);
CREATE INDEX windlass_alerts_pending ON windlass_alerts (next_at) WHERE delivery = 'pending';

-- The identity of this store: one row. A store that was restored from a backup keeps it.
CREATE TABLE windlass_store (id uuid PRIMARY KEY);
INSERT INTO windlass_store (id) VALUES (gen_random_uuid());

-- Generations: how often a process began to work on each connection. Each increase is then recorded
-- beside the connection's ledger. A ledger with a higher generation than this table proves that the
-- store was restored from a backup, or that a replica which lagged was promoted.
CREATE TABLE windlass_generations (
    connection  text PRIMARY KEY,
    generation  bigint NOT NULL
);
