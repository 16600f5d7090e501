-- Deletes deferred items that need no further try.
--
-- Lock: the rows. The chunk's ledger row is locked before, so no other transaction changes them.
-- Index: the primary key.
DELETE FROM windlass_deferred WHERE job_id = $1 AND chunk = $2 AND item_key = ANY($3)
