-- Forgets a trigger whose job is submitted. Lock: the trigger. Index: the primary key.
DELETE FROM windlass_triggers WHERE id = $1
