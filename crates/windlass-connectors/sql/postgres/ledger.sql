-- The ledger: the progress of each chunk, and its deferred items. It is stored next to the data, so that one
-- transaction changes both.
--
-- If Windlass may not create tables, an administrator runs this. Afterwards Windlass needs:
--   GRANT SELECT, INSERT, UPDATE, DELETE ON windlass_ledger, windlass_deferred, windlass_emitted,
--     windlass_stores TO <the user>;
--
-- Every commit updates the ledger row, without changing an indexed column. The free space on each page keeps
-- these updates on their page (HOT) and out of the index.
CREATE TABLE IF NOT EXISTS windlass_ledger (
    job_id            uuid        NOT NULL,
    chunk             bigint      NOT NULL,
    epoch             bigint      NOT NULL,
    nonce             bigint      NOT NULL DEFAULT 0,
    commits           bigint      NOT NULL DEFAULT 0,
    cursor            text        NOT NULL DEFAULT 'null',
    read              bigint      NOT NULL DEFAULT 0,
    processed         bigint      NOT NULL DEFAULT 0,
    skipped           bigint      NOT NULL DEFAULT 0,
    dead              bigint      NOT NULL DEFAULT 0,
    conflicts         bigint      NOT NULL DEFAULT 0,
    emitted           bigint      NOT NULL DEFAULT 0,
    stalls            integer     NOT NULL DEFAULT 0,
    opened_at_commits bigint      NOT NULL DEFAULT 0,
    updated_at        timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (job_id, chunk)
) WITH (fillfactor = 50);
-- By its statistics the planner assumes that a new job has hardly any chunks, and would read all of them to
-- find a few by number.
ALTER TABLE windlass_ledger ALTER COLUMN job_id SET STATISTICS 0;

-- If a key is too long for an index entry, `item_key` has its beginning and a digest, and `long_key` the whole
-- key.
CREATE TABLE IF NOT EXISTS windlass_deferred (
    job_id    uuid        NOT NULL,
    chunk     bigint      NOT NULL,
    item_key  text        COLLATE "C" NOT NULL,
    long_key  text,
    state     text        NOT NULL,
    attempts  integer     NOT NULL,
    conflicts integer     NOT NULL,
    error     text        NOT NULL,
    context   json        NOT NULL,
    record    json        NOT NULL,
    due_at    timestamptz NOT NULL,
    PRIMARY KEY (job_id, chunk, item_key)
) WITH (fillfactor = 80);

-- The rows that items emitted, committed together with their items.
CREATE TABLE IF NOT EXISTS windlass_emitted (
    job_id    uuid    NOT NULL,
    chunk     bigint  NOT NULL,
    item_key  text    COLLATE "C" NOT NULL,
    seq       integer NOT NULL,
    fields    json    NOT NULL,
    PRIMARY KEY (job_id, chunk, item_key, seq)
);

-- The generation of each store that has used this ledger, by its name of the connection. A store with a lower
-- generation was restored to an older state.
CREATE TABLE IF NOT EXISTS windlass_stores (
    store_id   uuid   NOT NULL,
    connection text   NOT NULL,
    generation bigint NOT NULL,
    PRIMARY KEY (store_id, connection)
);
