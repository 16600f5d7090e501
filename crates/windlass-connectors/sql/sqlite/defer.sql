-- Stores a deferred item. Overwrites its row if it is deferred already.
--
-- Lock: the write lock of the file. Index: the primary key.
INSERT INTO windlass_deferred
    (job_id, chunk, item_key, state, attempts, conflicts, error, context, record, due_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, CAST(unixepoch('subsec') * 1000 AS INTEGER) + ?10)
ON CONFLICT (job_id, chunk, item_key) DO UPDATE SET
    state = excluded.state,
    attempts = excluded.attempts,
    conflicts = excluded.conflicts,
    error = excluded.error,
    context = excluded.context,
    record = excluded.record,
    due_at = excluded.due_at
