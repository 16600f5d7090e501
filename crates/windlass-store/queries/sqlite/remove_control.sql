-- Removes what is said of a subject. Lock: the writer's. Index: the primary key.
DELETE FROM windlass_controls WHERE subject = ?1
