-- Deletes the controls of a subject.
-- Lock: the row.
-- Index: the primary key.
DELETE FROM windlass_controls WHERE subject = $1
