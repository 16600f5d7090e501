-- Stores deferred items. Overwrites the row of an item that is deferred already.
--
-- Lock: the rows. The chunk's ledger row is locked before, so no other transaction changes them.
-- Index: the primary key.
INSERT INTO windlass_deferred
    (job_id, chunk, item_key, long_key, state, attempts, conflicts, error, context, record, due_at)
SELECT $1, $2, deferred.item_key, deferred.long_key, deferred.state, deferred.attempts, deferred.conflicts,
    deferred.error, deferred.context::json, deferred.record::json,
    clock_timestamp() + deferred.wait * interval '1 millisecond'
FROM unnest($3, $4, $5, $6, $7, $8, $9, $10, $11)
    AS deferred(item_key, long_key, state, attempts, conflicts, error, context, record, wait)
ON CONFLICT (job_id, chunk, item_key) DO UPDATE SET
    state = excluded.state,
    attempts = excluded.attempts,
    conflicts = excluded.conflicts,
    error = excluded.error,
    context = excluded.context,
    record = excluded.record,
    due_at = excluded.due_at
