-- Letters are grouped by the fingerprint of their error: its text without the values in it. Those that were
-- written before keep their text as it is, up to a length that an index takes.
ALTER TABLE windlass_dead_letters ADD COLUMN fingerprint text;
UPDATE windlass_dead_letters SET fingerprint = left(error, 300);
ALTER TABLE windlass_dead_letters ALTER COLUMN fingerprint SET NOT NULL;
