-- Forgets held items that came to an end.
--
-- Lock: the rows; the chunk's ledger row is locked before, so nobody else is here.
-- Index: the primary key.
DELETE FROM windlass_deferred WHERE job_id = $1 AND chunk = $2 AND item_key = ANY($3)
