-- Increases the counter that waiting processes poll.
-- Lock: the write transaction.
-- Index: none.
UPDATE windlass_signal SET count = count + 1 RETURNING count
