-- The ledger: how far each chunk is committed, and the items the cursor has passed but that are
-- not done. Both live beside the data they speak of, so that one transaction changes both.
--
-- Who may not create tables has this run by somebody who may, and needs afterwards, on each of the
-- four tables:
--   GRANT SELECT, INSERT, UPDATE, DELETE ON windlass_ledger TO <the user>;
--
-- Keys are compared byte by byte, whatever the database's own collation is. An item's key is its
-- JSON; one that is longer than an index entry may be stands in `item_key` with its beginning and a
-- digest, and whole in `long_key`.
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

-- The rows that items emitted, committed with them.
CREATE TABLE IF NOT EXISTS windlass_emitted (
    job_id    CHAR(36)     CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    chunk     BIGINT       NOT NULL,
    item_key  VARCHAR(700) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    place     INT          NOT NULL,
    fields    LONGTEXT     CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    PRIMARY KEY (job_id, chunk, item_key, place)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- Which generation of which store has worked here, by the name it gives this connection. A store whose
-- own generation is lower was restored to an older state.
CREATE TABLE IF NOT EXISTS windlass_stores (
    store_id   CHAR(36)     CHARACTER SET ascii COLLATE ascii_bin NOT NULL,
    connection VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
    generation BIGINT       NOT NULL,
    PRIMARY KEY (store_id, connection)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
