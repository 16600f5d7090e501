-- Raises the ledger row of a load to the epoch of its lease. The table is locked.
UPDATE windlass_ledger SET epoch = {epoch}, nonce = {nonce}
WHERE job_id = {job} AND chunk = {chunk} AND epoch <= {epoch}
