-- Links a new job to a parent.
-- Lock: the write transaction.
-- Index: the primary key.
INSERT INTO windlass_links (child, parent, waits) VALUES (?1, ?2, ?3)
