-- Inserts a job that is to be submitted because its parents have ended.
-- Lock: the new row.
-- Index: the primary key.
INSERT INTO windlass_triggers (id, request, identity, root) VALUES ($1, $2, $3, $4)
