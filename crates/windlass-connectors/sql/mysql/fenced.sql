-- The ledger rows of several chunks, which this transaction has raised and locked.
--
-- MySQL refuses FOR UPDATE over a JSON_TABLE unless it names the table to lock, which MariaDB cannot.
--
-- Lock: the rows, already locked. Index: the primary key.
SELECT ledger.job_id, ledger.chunk, ledger.epoch, ledger.commits, ledger.`cursor`, ledger.`read`,
    ledger.processed, ledger.skipped, ledger.dead, ledger.conflicts, ledger.stalls,
    ledger.nonce
FROM JSON_TABLE(?, '$[*]' COLUMNS (
    job CHAR(36) CHARACTER SET ascii COLLATE ascii_bin PATH '$[0]' ERROR ON ERROR,
    number BIGINT PATH '$[1]' ERROR ON ERROR
)) AS asked
STRAIGHT_JOIN windlass_ledger AS ledger
    ON ledger.job_id = asked.job AND ledger.chunk = asked.number
FOR UPDATE /*!80000 OF ledger */
