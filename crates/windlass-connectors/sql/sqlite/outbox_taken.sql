-- Removes a row whose job is submitted. By its id, which no later row has. Index: the primary key.
DELETE FROM windlass_outbox WHERE id = ?1
