-- Additions of the tests to the example's tables: short names for its columns, a log of every change, gates that block
-- a commit, and rows that make it fail.

-- The columns that the tests use.
CREATE VIEW maps AS
SELECT
    "ID" AS visit_id,
    "VisitDate" AS visit_date,
    "SSN" AS ssn,
    "CONFLICTID" AS conflict_id,
    "UpdateFlag" AS update_flag,
    "UpdatedDate" AS updated_date,
    xmin AS version
FROM conflictvisitmaps;

-- The visits that are due, in the order of their keys.
CREATE TABLE places AS
SELECT row_number() OVER (ORDER BY visit_date, ssn, visit_id) AS place, visit_id
FROM maps
WHERE conflict_id IS NOT NULL;

-- One row per committed update of a visit. `done` means that it set "UpdatedDate".
CREATE TABLE changes (
    visit_id bigint  NOT NULL,
    done     boolean NOT NULL,
    commit   xid8    NOT NULL DEFAULT pg_current_xact_id()
);

-- A statement that reaches one of these visits waits until it is no longer listed.
CREATE TABLE gates (visit_id bigint PRIMARY KEY);

-- A statement that reaches one of these visits fails with this SQLSTATE.
CREATE TABLE broken (visit_id bigint PRIMARY KEY, code text NOT NULL);

CREATE FUNCTION hold_up() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    failure text;
BEGIN
    IF EXISTS (SELECT FROM gates WHERE visit_id = NEW."ID") THEN
        -- The lock shows other sessions that a statement waits here. Waiting for a lock instead would end with
        -- lock_timeout.
        PERFORM pg_advisory_xact_lock(NEW."ID");
        WHILE EXISTS (SELECT FROM gates WHERE visit_id = NEW."ID") LOOP
            PERFORM pg_sleep(0.01);
        END LOOP;
    END IF;
    SELECT code INTO failure FROM broken WHERE visit_id = NEW."ID";
    IF FOUND THEN
        RAISE EXCEPTION 'visit % is broken', NEW."ID" USING ERRCODE = failure;
    END IF;
    RETURN NEW;
END
$$;

CREATE FUNCTION log_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO changes (visit_id, done)
    VALUES (
        NEW."ID",
        NEW."UpdatedDate" IS NOT NULL AND NEW."UpdatedDate" IS DISTINCT FROM OLD."UpdatedDate"
    );
    RETURN NULL;
END
$$;

CREATE TRIGGER hold_up BEFORE UPDATE OF "UpdatedDate" ON conflictvisitmaps
    FOR EACH ROW EXECUTE FUNCTION hold_up();
CREATE TRIGGER log_change AFTER UPDATE ON conflictvisitmaps FOR EACH ROW EXECUTE FUNCTION log_change();
