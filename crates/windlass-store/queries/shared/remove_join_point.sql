-- Deletes a join point whose dependency has fired.
-- Lock: the join point (already locked).
-- Index: the primary key.
DELETE FROM windlass_join_points WHERE key = $1
