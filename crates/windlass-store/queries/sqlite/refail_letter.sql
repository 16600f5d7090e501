-- Updates the letter whose item died again in a redrive, and frees it. A repeated call finds none
-- that names the redrive any more. Lock: the writer's. Index: windlass_dead_letters_redrive.
UPDATE windlass_dead_letters
SET record = ?3,
    error = ?4,
    fingerprint = ?5,
    context = ?6,
    attempts = attempts + ?7,
    redrive_job = NULL,
    updated_at = CAST(unixepoch('subsec') * 1000 AS INTEGER)
WHERE redrive_job = ?1 AND key = ?2
