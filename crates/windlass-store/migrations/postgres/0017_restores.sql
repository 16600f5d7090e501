-- What makes a restored store (a backup, or a failover to a replica that lagged) harmless and visible.
--
-- Every claim draws a random nonce. A store that went back in time gives epochs a second time, but never
-- the same nonce with them: the epoch and the nonce together name one claim for ever.
ALTER TABLE windlass_chunks ADD COLUMN nonce bigint NOT NULL DEFAULT 0;
ALTER TABLE windlass_segments ADD COLUMN nonce bigint NOT NULL DEFAULT 0;
ALTER TABLE windlass_parts ADD COLUMN nonce bigint NOT NULL DEFAULT 0;

-- The identity of this store, one row. A restored store keeps it.
CREATE TABLE windlass_store (id uuid PRIMARY KEY);
INSERT INTO windlass_store (id) VALUES (gen_random_uuid());

-- How often a process began to work on each connection. Each raise is recorded beside the connection's
-- ledger afterwards: a ledger that has seen a higher generation than this table proves a restore.
CREATE TABLE windlass_generations (
    connection  text PRIMARY KEY,
    generation  bigint NOT NULL
);
