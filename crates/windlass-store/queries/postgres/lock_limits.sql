-- Runs before chunks are leased. Only one process at a time may count the chunks in progress of a
-- limited subject, since two would both find the same free slots. The statement that follows sees
-- what the previous process leased.
-- Lock: the control rows of limited subjects, in order.
-- Index: none; the table is small.
SELECT
FROM windlass_controls
WHERE coalesce(concurrency, default_concurrency) IS NOT NULL
ORDER BY subject
FOR UPDATE
