-- The ledger: how far each chunk is committed, and the items the cursor has passed but that are
-- not done. Both live beside the data they speak of, so that one transaction changes both.
--
-- Who may not create tables has this run by somebody who may, and needs afterwards:
--   GRANT SELECT, INSERT, UPDATE, DELETE ON windlass_ledger, windlass_deferred, windlass_emitted,
--     windlass_stores TO <the user>;
--
-- The ledger row is updated by every commit and no indexed column changes with it: the free space
-- left on each page keeps those updates on their page (HOT) and out of the index.
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
-- By its statistics the planner would take a new job for one of hardly any chunks, and walk through
-- all of them to find a few by their numbers.
ALTER TABLE windlass_ledger ALTER COLUMN job_id SET STATISTICS 0;

-- A key that is longer than an index entry may be stands in `item_key` with its beginning and a
-- digest, and whole in `long_key`.
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

-- The rows that items emitted, committed with them.
CREATE TABLE IF NOT EXISTS windlass_emitted (
    job_id    uuid    NOT NULL,
    chunk     bigint  NOT NULL,
    item_key  text    COLLATE "C" NOT NULL,
    place     integer NOT NULL,
    fields    json    NOT NULL,
    PRIMARY KEY (job_id, chunk, item_key, place)
);

-- Which generation of which store has worked here, by the name it gives this connection. A store whose
-- own generation is lower was restored to an older state.
CREATE TABLE IF NOT EXISTS windlass_stores (
    store_id   uuid   NOT NULL,
    connection text   NOT NULL,
    generation bigint NOT NULL,
    PRIMARY KEY (store_id, connection)
);
