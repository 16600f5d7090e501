-- Deletes a deferred item that needs no further try.
--
-- Lock: the write lock of the file. Index: the primary key.
DELETE FROM windlass_deferred WHERE job_id = ?1 AND chunk = ?2 AND item_key = ?3
