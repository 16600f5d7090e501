-- What makes a restored store (a backup, or a file that was copied back) harmless and visible.
--
-- Every claim draws a random nonce. A store that went back in time gives epochs a second time, but never
-- the same nonce with them: the epoch and the nonce together name one claim for ever.
ALTER TABLE windlass_chunks ADD COLUMN nonce INTEGER NOT NULL DEFAULT 0;
ALTER TABLE windlass_segments ADD COLUMN nonce INTEGER NOT NULL DEFAULT 0;
ALTER TABLE windlass_parts ADD COLUMN nonce INTEGER NOT NULL DEFAULT 0;

-- The identity of this store, one row. A restored store keeps it.
CREATE TABLE windlass_store (id TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
INSERT INTO windlass_store (id)
SELECT substr(h, 1, 8) || '-' || substr(h, 9, 4) || '-4' || substr(h, 14, 3) || '-a' || substr(h, 18, 3)
    || '-' || substr(h, 21, 12)
FROM (SELECT lower(hex(randomblob(16))) AS h);

-- How often a process began to work on each connection. Each raise is recorded beside the connection's
-- ledger afterwards: a ledger that has seen a higher generation than this table proves a restore.
CREATE TABLE windlass_generations (
    connection  TEXT PRIMARY KEY,
    generation  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
