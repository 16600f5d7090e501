-- Deletes submitted rows. Lock: the rows, already locked. Index: the primary key.
DELETE FROM windlass_outbox WHERE id = ANY ($1)
