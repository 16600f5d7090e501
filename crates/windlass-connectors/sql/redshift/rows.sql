-- The ledger rows of a job in order of chunk numbers, after one. Lock: none.
SELECT job_id, chunk, epoch, nonce, commits, cursor, read, processed
FROM windlass_ledger
WHERE job_id = {job} AND chunk > {after}
ORDER BY chunk
LIMIT {limit}
