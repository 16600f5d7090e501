-- The example's warehouse, for Amazon Redshift: one row for each night and branch, and the exported transactions.
-- Redshift does not enforce the keys; a load replaces the rows of its date.
CREATE TABLE IF NOT EXISTS daily_report (
    date         date          NOT NULL,
    branch       varchar(160)  NOT NULL,
    transactions bigint        NOT NULL,
    total        decimal(24,2) NOT NULL,
    largest      decimal(24,2),
    last_booked  timestamp,
    PRIMARY KEY (date, branch)
);
CREATE TABLE IF NOT EXISTS transactions (
    date      date          NOT NULL,
    id        bigint        NOT NULL,
    branch    varchar(160)  NOT NULL,
    account   char(12)      NOT NULL,
    amount    decimal(12,2),
    booked_at timestamp     NOT NULL,
    memo      varchar(320),
    PRIMARY KEY (date, id)
);
