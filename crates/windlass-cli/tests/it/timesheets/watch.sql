-- Additions of the tests to the tables of the example and of the store: a log of every status of a job and of every
-- delay of a chunk, and employees whose summary cannot be written.

CREATE TABLE edges (job uuid NOT NULL, edge text NOT NULL);

CREATE FUNCTION log_edge() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO edges VALUES (NEW.id, '- > ' || NEW.status);
    ELSIF NEW.status <> OLD.status THEN
        INSERT INTO edges VALUES (NEW.id, OLD.status || ' > ' || NEW.status);
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER log_edge AFTER INSERT OR UPDATE OF status ON windlass_jobs
    FOR EACH ROW EXECUTE FUNCTION log_edge();

-- The delay of a chunk after each failed attempt, from the start of the transaction, so it is never less than the
-- configured one. `most` is from now, so it is never more.
CREATE TABLE waits (job uuid NOT NULL, attempt bigint NOT NULL, wait interval NOT NULL, most interval NOT NULL);

CREATE FUNCTION log_wait() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO waits VALUES (NEW.job_id, NEW.attempts, NEW.available_at - now(), NEW.available_at - clock_timestamp());
    RETURN NULL;
END
$$;

CREATE TRIGGER log_wait AFTER UPDATE OF attempts ON windlass_chunks
    FOR EACH ROW WHEN (NEW.attempts > OLD.attempts AND NEW.status = 'PENDING')
    EXECUTE FUNCTION log_wait();

-- The summary of one of these employees is refused and counted. A sequence is not rolled back.
CREATE TABLE broken (employee_id bigint PRIMARY KEY);
CREATE SEQUENCE refusals MINVALUE 0 START 0;
SELECT nextval('refusals');

CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF EXISTS (SELECT FROM broken WHERE employee_id = NEW.employee_id) THEN
        PERFORM nextval('refusals');
        -- A transient error, so the whole chunk is retried.
        RAISE EXCEPTION 'employee % is being audited', NEW.employee_id USING ERRCODE = '55006';
    END IF;
    RETURN NEW;
END
$$;

CREATE TRIGGER refuse BEFORE INSERT ON summaries FOR EACH ROW EXECUTE FUNCTION refuse();
