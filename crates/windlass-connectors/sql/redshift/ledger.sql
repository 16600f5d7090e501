-- The ledger beside the loaded tables: one row per job that loads, and the generation of each store.
--
-- Redshift does not enforce primary keys. Windlass locks a table before it reads and writes it, so that no two
-- transactions insert the same row.
--
-- If Windlass may not create tables, an administrator runs this. Afterwards Windlass needs:
--   GRANT SELECT, INSERT, UPDATE, DELETE ON windlass_ledger, windlass_stores TO <the user>;
CREATE TABLE IF NOT EXISTS windlass_ledger (
    job_id    varchar(36)  NOT NULL,
    chunk     bigint       NOT NULL,
    epoch     bigint       NOT NULL,
    nonce     bigint       NOT NULL,
    commits   bigint       NOT NULL,
    cursor    varchar(256) NOT NULL,
    read      bigint       NOT NULL,
    processed bigint       NOT NULL,
    PRIMARY KEY (job_id, chunk)
);
CREATE TABLE IF NOT EXISTS windlass_stores (
    store_id   varchar(36)  NOT NULL,
    connection varchar(256) NOT NULL,
    generation bigint       NOT NULL,
    PRIMARY KEY (store_id, connection)
);
