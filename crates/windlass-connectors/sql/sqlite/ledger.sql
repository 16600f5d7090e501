-- The ledger: the progress of each chunk, and its deferred items. It is stored next to the data, so that one
-- transaction changes both.
--
-- Times are milliseconds since 1970, by this machine's clock.
CREATE TABLE IF NOT EXISTS windlass_ledger (
    job_id            TEXT    NOT NULL,
    chunk             INTEGER NOT NULL,
    epoch             INTEGER NOT NULL,
    nonce             INTEGER NOT NULL DEFAULT 0,
    commits           INTEGER NOT NULL DEFAULT 0,
    cursor            TEXT    NOT NULL DEFAULT 'null',
    read              INTEGER NOT NULL DEFAULT 0,
    processed         INTEGER NOT NULL DEFAULT 0,
    skipped           INTEGER NOT NULL DEFAULT 0,
    dead              INTEGER NOT NULL DEFAULT 0,
    conflicts         INTEGER NOT NULL DEFAULT 0,
    emitted           INTEGER NOT NULL DEFAULT 0,
    stalls            INTEGER NOT NULL DEFAULT 0,
    opened_at_commits INTEGER NOT NULL DEFAULT 0,
    updated_at        INTEGER NOT NULL,
    PRIMARY KEY (job_id, chunk)
) WITHOUT ROWID;

CREATE TABLE IF NOT EXISTS windlass_deferred (
    job_id    TEXT    NOT NULL,
    chunk     INTEGER NOT NULL,
    item_key  TEXT    NOT NULL,
    state     TEXT    NOT NULL,
    attempts  INTEGER NOT NULL,
    conflicts INTEGER NOT NULL,
    error     TEXT    NOT NULL,
    context   TEXT    NOT NULL,
    record    TEXT    NOT NULL,
    due_at    INTEGER NOT NULL,
    PRIMARY KEY (job_id, chunk, item_key)
);

-- The rows that items emitted, committed together with their items.
CREATE TABLE IF NOT EXISTS windlass_emitted (
    job_id    TEXT    NOT NULL,
    chunk     INTEGER NOT NULL,
    item_key  TEXT    NOT NULL,
    seq       INTEGER NOT NULL,
    fields    TEXT    NOT NULL,
    PRIMARY KEY (job_id, chunk, item_key, seq)
) WITHOUT ROWID;

-- The generation of each store that has used this ledger, by its name of the connection. A store with a lower
-- generation was restored to an older state.
CREATE TABLE IF NOT EXISTS windlass_stores (
    store_id   TEXT    NOT NULL,
    connection TEXT    NOT NULL,
    generation INTEGER NOT NULL,
    PRIMARY KEY (store_id, connection)
) WITHOUT ROWID;
