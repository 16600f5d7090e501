-- Deletes the controls of a subject.
-- Lock: the write transaction.
-- Index: the primary key.
DELETE FROM windlass_controls WHERE subject = ?1
