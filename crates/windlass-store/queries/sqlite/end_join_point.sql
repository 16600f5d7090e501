-- Ends a join_point: its rule has fired. Lock: the join_point, held already. Index: the primary key.
DELETE FROM windlass_join_points WHERE key = ?1
