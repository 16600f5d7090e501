-- Creates the ledger row of a load. The table is locked, and the row does not exist.
INSERT INTO windlass_ledger (job_id, chunk, epoch, nonce, commits, cursor, read, processed)
VALUES ({job}, {chunk}, {epoch}, {nonce}, 0, 'null', 0, 0)
