-- Deletes a trigger whose job was submitted.
-- Lock: the trigger.
-- Index: the primary key.
DELETE FROM windlass_triggers WHERE id = $1
