-- Remembers who of a rule's parents is here. Lock: the meeting, held already. Index: the primary key.
UPDATE windlass_meetings SET arrived = $2 WHERE key = $1
