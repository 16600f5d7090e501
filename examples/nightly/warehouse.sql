-- The example's warehouse, for PostgreSQL: one row for each night and branch.
--
--   psql "$WAREHOUSE_URL" -f warehouse.sql
CREATE TABLE IF NOT EXISTS daily_report (
    date         date    NOT NULL,
    branch       text    NOT NULL,
    transactions bigint  NOT NULL,
    total        numeric NOT NULL,
    largest      numeric,
    last_booked  timestamp,
    PRIMARY KEY (date, branch)
);
