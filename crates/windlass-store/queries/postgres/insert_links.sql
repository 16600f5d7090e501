-- Links a new job to its parents.
-- Lock: the new rows; the parents are locked.
-- Index: the primary key.
INSERT INTO windlass_links (child, parent, waits)
SELECT $1, l.parent, l.waits FROM unnest($2::uuid[], $3::boolean[]) AS l (parent, waits)
