-- Puts a request into the outbox; no row comes back where there was nothing to do.
INSERT INTO windlass_outbox (job_type, request) VALUES (?1, ?2) RETURNING id
