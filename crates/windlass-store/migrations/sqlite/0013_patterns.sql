-- Letters are grouped by the pattern of their error: its text without the values in it. Those that were
-- written before keep their text as it is, up to a length that an index takes.
ALTER TABLE windlass_dead_letters ADD COLUMN pattern TEXT NOT NULL DEFAULT '';
UPDATE windlass_dead_letters SET pattern = substr(error, 1, 300);
