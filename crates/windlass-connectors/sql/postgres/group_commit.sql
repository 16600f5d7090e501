-- advance.sql for several chunks whose commits change only the ledger. Returns a row for each chunk that had the
-- expected epoch, nonce and number of commits.
--
-- `windlass.in_transaction`: see advance.sql.
--
-- Lock: the rows in the given order, which is key order, so that two processes cannot deadlock.
-- Index: the primary key.
UPDATE windlass_ledger AS ledger SET
    cursor = d.cursor,
    commits = ledger.commits + 1,
    read = ledger.read + d.read,
    processed = ledger.processed + d.processed,
    skipped = ledger.skipped + d.skipped,
    dead = ledger.dead + d.dead,
    conflicts = ledger.conflicts + d.conflicts,
    updated_at = clock_timestamp()
FROM unnest(
    $1::uuid[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::bigint[], $7::bigint[],
    $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[]
) AS d (job_id, chunk, epoch, commits, cursor, read, processed, skipped, dead, conflicts, nonce)
WHERE ledger.job_id = d.job_id
    AND ledger.chunk = d.chunk
    AND ledger.epoch = d.epoch
    AND ledger.nonce = d.nonce
    AND ledger.commits = d.commits
    AND current_setting('windlass.in_transaction', true) = 'on'
RETURNING ledger.job_id, ledger.chunk, ledger.epoch, ledger.commits, ledger.cursor, ledger.read,
    ledger.processed, ledger.skipped, ledger.dead, ledger.conflicts, ledger.stalls, ledger.nonce
