-- Records the beginning of an outage that lasts some milliseconds.
-- Lock: the write transaction.
-- Index: the primary key.
INSERT OR IGNORE INTO windlass_outages (subject, began_at, ended_at)
VALUES (?1, CAST(unixepoch('subsec') * 1000 AS INTEGER), CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?2)
