-- Records why a trigger could not be submitted. It is tried again after ?3 milliseconds.
-- Lock: the write transaction.
-- Index: the primary key.
UPDATE windlass_triggers
SET attempts = attempts + 1,
    error = ?2,
    available_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?3
WHERE id = ?1
