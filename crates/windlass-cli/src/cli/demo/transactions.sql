-- The demo's table. A negative amount is a mistake that only settling finds: its fee then breaks the check.
CREATE TABLE transactions (
    id      INTEGER PRIMARY KEY,
    branch  TEXT    NOT NULL,
    amount  INTEGER NOT NULL,
    status  TEXT    NOT NULL,
    fee     INTEGER CONSTRAINT "a settled amount is positive" CHECK (fee IS NULL OR amount > 0),
    class   TEXT,
    note    TEXT,
    version INTEGER NOT NULL DEFAULT 1
);
CREATE INDEX transactions_branch ON transactions (branch);
