-- Moves the counter that waiting processes look at. Lock: the writer's. Index: the one row.
UPDATE windlass_signal SET count = count + 1 RETURNING count
