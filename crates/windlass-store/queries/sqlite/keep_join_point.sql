-- Remembers who of a rule's parents is here. Lock: the join_point, held already. Index: the primary key.
UPDATE windlass_join_points SET arrived = ?2 WHERE key = ?1
