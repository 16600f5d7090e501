-- Updates the letter whose item failed again in a redrive, and releases it. A repeated call finds
-- no letter that names the redrive.
-- Lock: the write transaction.
-- Index: windlass_dead_letters_redrive.
UPDATE windlass_dead_letters
SET record = ?3,
    error = ?4,
    fingerprint = ?5,
    context = ?6,
    attempts = attempts + ?7,
    redrive_job = NULL,
    updated_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE redrive_job = ?1 AND key = ?2
