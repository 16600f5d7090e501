-- One request of the outbox, since requests may be large. Index: the primary key.
SELECT job_type, request FROM windlass_outbox WHERE id = ?1
