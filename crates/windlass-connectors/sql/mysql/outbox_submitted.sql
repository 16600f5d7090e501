-- Deletes a submitted row by its id, which is never reused. Index: the primary key.
DELETE FROM windlass_outbox WHERE id = ?
