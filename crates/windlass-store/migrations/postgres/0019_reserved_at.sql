-- When the time of a rate limit was last reserved: by a clock that was ahead then, `next_at` is too.
ALTER TABLE windlass_controls ADD COLUMN reserved_at timestamptz;
UPDATE windlass_controls SET next_at = NULL;
