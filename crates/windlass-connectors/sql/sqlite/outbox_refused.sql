-- Records why a row was refused, and when it is submitted again. Index: the primary key.
UPDATE windlass_outbox
SET attempts = min(attempts, 999999999) + 1,
    error = ?2,
    next_at = CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) + ?3
WHERE id = ?1
