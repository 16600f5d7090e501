-- The example's source, for MariaDB: the transactions of the day that is to be closed, the same rows
-- each time. Ten million of them, or as many as @rows says.
--
--   mariadb --init-command='SET @rows = 1000000' bank < transactions.sql
SET @rows = COALESCE(@rows, 10000000);

DROP TABLE IF EXISTS transactions;

CREATE TABLE transactions (
    id        BIGINT        NOT NULL PRIMARY KEY,
    branch    VARCHAR(40)   NOT NULL,
    account   CHAR(12)      NOT NULL,
    -- Unknown where a transaction is still disputed.
    amount    DECIMAL(12,2),
    booked_at DATETIME(6)   NOT NULL,
    memo      VARCHAR(80)
) CHARACTER SET utf8mb4;

-- Into an empty table without these checks, the server loads in bulk.
SET @checks = @@unique_checks, @foreign = @@foreign_key_checks;
SET unique_checks = 0, foreign_key_checks = 0;

-- Keys have gaps, as in life. Two hundred branches; every ninth row is of the first, so that sums
-- differ in size. Hard to carry: the largest and smallest amounts that the type holds, cents that no
-- binary fraction has, nothing at all; the first and last moment of the day; names with quotes,
-- commas, breaks and letters from anywhere.
INSERT INTO transactions
SELECT
    seq * 3 + seq % 3,
    CASE
        WHEN seq % 9 = 0 THEN '本店'
        WHEN seq % 1001 = 0 THEN 'O''Hara, "Sons" & Cie'
        ELSE CONCAT('branch ', LPAD(seq * 7919 % 200, 3, '0'))
    END,
    LPAD(seq * 104729 % 1000000000000, 12, '0'),
    CASE
        WHEN seq % 10007 = 1 THEN 9999999999.99
        WHEN seq % 10007 = 2 THEN -9999999999.99
        WHEN seq % 997 = 0 THEN NULL
        WHEN seq % 13 = 0 THEN -0.01
        ELSE (CAST(seq * 7919 % 20000000 AS SIGNED) - 4000000) * 0.01
    END,
    TIMESTAMP '2026-01-30 00:00:00.000000' + INTERVAL (CASE
        WHEN seq % 5003 = 0 THEN 86399999999
        WHEN seq % 5003 = 1 THEN 0
        ELSE seq * 86028121 % 86400000000
    END) MICROSECOND,
    CASE seq % 500
        WHEN 0 THEN CONCAT('two', CHAR(10 USING utf8mb4), 'lines')
        WHEN 1 THEN ''
        WHEN 2 THEN 'paid 💴, "late"'
        WHEN 3 THEN NULL
        ELSE CONCAT('transfer ', seq)
    END
FROM seq_1_to_10000000
WHERE seq <= @rows;

SET unique_checks = @checks, foreign_key_checks = @foreign;
ANALYZE TABLE transactions;
