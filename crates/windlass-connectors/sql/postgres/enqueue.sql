-- Inserts a request into the outbox. Returns NULL if there is nothing to do.
SELECT windlass_enqueue($1, $2::text::jsonb)
