-- The ledger: the progress of each chunk, and its deferred items. It is stored next to the data, so that one
-- transaction changes both.
--
-- If Windlass may not create tables, an administrator runs this. Afterwards Windlass needs, on each of the four
-- tables:
--   GRANT SELECT, INSERT, UPDATE, DELETE ON windlass_ledger TO <the user>;
--
-- Keys are compared by bytes, regardless of the database's collation. The key of an item is JSON. If it is too
-- long for an index entry, `item_key` has its beginning and a digest, and `long_key` the whole key.
-- Times are milliseconds since 1970, by the server's clock.
CREATE TABLE IF NOT EXISTS windlass_ledger (
    job_id            CHAR(36) CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    chunk             BIGINT   NOT NULL,
    epoch             BIGINT   NOT NULL,
    nonce             BIGINT   NOT NULL DEFAULT 0,
    commits           BIGINT   NOT NULL DEFAULT 0,
    `cursor`          LONGTEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL DEFAULT ('null'),
    `read`            BIGINT   NOT NULL DEFAULT 0,
    processed         BIGINT   NOT NULL DEFAULT 0,
    skipped           BIGINT   NOT NULL DEFAULT 0,
    dead              BIGINT   NOT NULL DEFAULT 0,
    conflicts         BIGINT   NOT NULL DEFAULT 0,
    emitted           BIGINT   NOT NULL DEFAULT 0,
    stalls            INT      NOT NULL DEFAULT 0,
    opened_at_commits BIGINT   NOT NULL DEFAULT 0,
    updated_at        BIGINT   NOT NULL,
    PRIMARY KEY (job_id, chunk)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

CREATE TABLE IF NOT EXISTS windlass_deferred (
    job_id    CHAR(36)     CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    chunk     BIGINT       NOT NULL,
    item_key  VARCHAR(700) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    long_key  LONGTEXT     CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
    state     VARCHAR(10)  CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    attempts  INT          NOT NULL,
    conflicts INT          NOT NULL,
    error     LONGTEXT     CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    context   LONGTEXT     CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    record    LONGTEXT     CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    due_at    BIGINT       NOT NULL,
    PRIMARY KEY (job_id, chunk, item_key)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- The rows that items emitted, committed together with their items.
CREATE TABLE IF NOT EXISTS windlass_emitted (
    job_id    CHAR(36)     CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    chunk     BIGINT       NOT NULL,
    item_key  VARCHAR(700) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    seq       INT          NOT NULL,
    fields    LONGTEXT     CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    PRIMARY KEY (job_id, chunk, item_key, seq)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- The generation of each store that has used this ledger, by its name of the connection. A store with a lower
-- generation was restored to an older state.
CREATE TABLE IF NOT EXISTS windlass_stores (
    store_id   CHAR(36)     CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    connection VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    generation BIGINT       NOT NULL,
    PRIMARY KEY (store_id, connection)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
