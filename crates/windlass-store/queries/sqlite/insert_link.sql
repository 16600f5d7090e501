-- Links a new job to a parent. Lock: the writer's. Index: the primary key.
INSERT INTO windlass_links (child, parent, waits) VALUES (?1, ?2, ?3)
