-- Additions of the tests to the example's tables: a log of every change, gates that block a commit, and rows that make
-- it fail.

-- The visits that are due, in the order of their keys.
CREATE TABLE places AS
SELECT row_number() OVER (ORDER BY visit_date, ssn, visit_id) AS place, visit_id
FROM visits
WHERE conflict_id IS NOT NULL;

-- One row per committed update of a visit. `done` means that it set updated_date.
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
    IF EXISTS (SELECT FROM gates WHERE visit_id = NEW.visit_id) THEN
        -- The lock shows other sessions that a statement waits here. Waiting for a lock instead would end with
        -- lock_timeout.
        PERFORM pg_advisory_xact_lock(NEW.visit_id);
        WHILE EXISTS (SELECT FROM gates WHERE visit_id = NEW.visit_id) LOOP
            PERFORM pg_sleep(0.01);
        END LOOP;
    END IF;
    SELECT code INTO failure FROM broken WHERE visit_id = NEW.visit_id;
    IF FOUND THEN
        RAISE EXCEPTION 'visit % is broken', NEW.visit_id USING ERRCODE = failure;
    END IF;
    RETURN NEW;
END
$$;

CREATE FUNCTION log_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO changes (visit_id, done)
    VALUES (
        NEW.visit_id,
        NEW.updated_date IS NOT NULL AND NEW.updated_date IS DISTINCT FROM OLD.updated_date
    );
    RETURN NULL;
END
$$;

CREATE TRIGGER hold_up BEFORE UPDATE OF updated_date ON visits
    FOR EACH ROW EXECUTE FUNCTION hold_up();
CREATE TRIGGER log_change AFTER UPDATE ON visits FOR EACH ROW EXECUTE FUNCTION log_change();
