-- Forgets a held item that came to an end.
--
-- Lock: the file's one writer. Index: the primary key.
DELETE FROM windlass_deferred WHERE job_id = ?1 AND chunk = ?2 AND item_key = ?3
