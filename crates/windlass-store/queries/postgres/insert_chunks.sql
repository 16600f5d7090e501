-- Inserts the chunks of a page, with consecutive numbers from $3.
-- Lock: the new rows; the job is locked.
-- Index: the primary key.
INSERT INTO windlass_chunks (job_id, segment, number, key_set, items)
SELECT $1, $2, $3 + c.place - 1, c.key_set, c.items
FROM unnest($4::text[], $5::bigint[]) WITH ORDINALITY AS c (key_set, items, place)
