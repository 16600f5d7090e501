-- The first statement of every commit: the compare-and-set on the ledger row. Without such a row the lease is lost, or
-- this commit was applied before. The statement then fails with a division by zero, and the transaction with it.
--
-- `commits = $4` is used instead of a comparison with the old cursor: every commit adds one, so it changes
-- whenever the cursor does, and also when deferred items are committed without moving the cursor.
--
-- It is sent together with BEGIN. `windlass.in_transaction` is set only if BEGIN succeeded: without a transaction
-- this statement changes nothing.
--
-- Lock: the one row, until the end of the transaction. Index: the primary key.
WITH advanced AS (
    UPDATE windlass_ledger SET
        cursor = $5,
        commits = commits + 1,
        read = read + $6,
        processed = processed + $7,
        skipped = skipped + $8,
        dead = dead + $9,
        conflicts = conflicts + $10,
        updated_at = clock_timestamp()
    WHERE job_id = $1 AND chunk = $2 AND epoch = $3 AND nonce = $11 AND commits = $4
        AND current_setting('windlass.in_transaction', true) = 'on'
    RETURNING job_id, chunk, epoch, commits, cursor, read, processed, skipped, dead, conflicts, stalls,
        nonce
)
SELECT advanced.*, 1 / (SELECT count(*) FROM advanced) AS changed
FROM (VALUES (1)) AS one LEFT JOIN advanced ON true
