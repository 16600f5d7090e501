-- Inserts segments with the status $5, with consecutive numbers from $2.
-- Lock: the new rows; the job is locked or new in this transaction.
-- Index: the primary key.
INSERT INTO windlass_segments (job_id, number, state, key_range, status)
SELECT $1, $2 + s.place - 1, s.state, s.key_range, $5
FROM unnest($3::text[], $4::text[]) WITH ORDINALITY AS s (state, key_range, place)
