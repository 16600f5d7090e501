-- Removes rows whose jobs are submitted. Lock: held since they were taken. Index: the primary key.
DELETE FROM windlass_outbox WHERE id = ANY ($1)
