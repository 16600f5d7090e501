-- Inserts a job that is to be submitted because its parents have ended.
-- Lock: the write transaction.
-- Index: the primary key.
INSERT INTO windlass_triggers (id, request, identity, root, available_at)
VALUES (?1, ?2, ?3, ?4, CAST(unixepoch('subsec') * 1000 AS INTEGER))
