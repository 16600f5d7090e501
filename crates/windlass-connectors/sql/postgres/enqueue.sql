-- Puts a request into the outbox; NULL where there was nothing to do.
SELECT windlass_enqueue($1, $2::text::jsonb)
