-- Makes earlier commits of several chunks durable. Returns the chunks whose rows have the given epoch, nonce and
-- number of commits. The others lost commits in a crash of the server, or belong to another lease.
--
-- This transaction waits for the disk, and with it for everything that the log has before it, which includes the
-- commits that it reads. A transaction that writes nothing would not wait, so one of the rows is written.
--
-- Lock: one row. Index: the primary key.
WITH kept AS (
    SELECT ledger.job_id, ledger.chunk
    FROM unnest($1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[])
        AS given (job_id, chunk, epoch, nonce, commits)
    JOIN windlass_ledger AS ledger USING (job_id, chunk, epoch, nonce, commits)
), written AS (
    UPDATE windlass_ledger SET updated_at = clock_timestamp()
    WHERE (job_id, chunk) IN (SELECT job_id, chunk FROM kept LIMIT 1)
)
SELECT job_id, chunk FROM kept
