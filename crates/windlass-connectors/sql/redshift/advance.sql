-- The last change of a load: records it as committed. Another number of rows than one means that the lease is lost,
-- and the transaction must be rolled back. The table is locked.
UPDATE windlass_ledger SET cursor = {cursor}, commits = commits + 1, read = {rows}, processed = {rows}
WHERE job_id = {job} AND chunk = {chunk} AND epoch = {epoch} AND nonce = {nonce} AND commits = {commits}
