-- Inserts a request into the outbox. Returns no row if there is nothing to do.
INSERT INTO windlass_outbox (job_type, request) VALUES (?1, ?2) RETURNING id
