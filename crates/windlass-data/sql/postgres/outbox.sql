-- The outbox: requests that applications put there in transactions of their own, until the relay has
-- submitted them as jobs.
--
-- Who may not create tables has this run by somebody who may, as one transaction. Afterwards
-- Windlass needs:
--   GRANT SELECT, UPDATE, DELETE ON windlass_outbox TO <the user of windlass>;
-- An application needs nothing but:
--   GRANT EXECUTE ON FUNCTION windlass_enqueue(text, jsonb) TO <the application>;
CREATE TABLE IF NOT EXISTS windlass_outbox (
    id         uuid        PRIMARY KEY,
    job_type   text        NOT NULL,
    request    jsonb       NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    attempts   integer     NOT NULL DEFAULT 0,
    error      text,
    next_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX IF NOT EXISTS windlass_outbox_due ON windlass_outbox (next_at, id);

-- Puts a request there and gives the id that its job will have: a version 7 UUID, known before the
-- transaction commits. A list of no items makes no job and gives NULL.
CREATE OR REPLACE FUNCTION windlass_enqueue(job_type text, request jsonb) RETURNS uuid
LANGUAGE plpgsql VOLATILE SECURITY DEFINER AS $body$
DECLARE
    most   CONSTANT bigint := 8388608;
    bytes  bigint;
    item   bigint;
    wrong  text;
    random text;
    id     uuid;
BEGIN
    -- As much as the request will have with the job type's name in it.
    bytes := octet_length(request::text) + octet_length(job_type) + 16;
    wrong := CASE
        WHEN coalesce(job_type, '') = '' THEN 'job_type is missing'
        WHEN request IS NULL THEN 'request is missing; {} would be right'
        WHEN jsonb_typeof(request) <> 'object' THEN 'request is no JSON object'
        WHEN request ? 'jobType' THEN 'request has a jobType; it is the first argument'
        WHEN jsonb_typeof(request -> 'items') NOT IN ('array', 'null') THEN 'items is no list'
        WHEN jsonb_typeof(request -> 'params') NOT IN ('object') THEN 'params is no JSON object'
        WHEN jsonb_typeof(request -> 'claims') NOT IN ('object', 'null') THEN 'claims is no JSON object'
        WHEN jsonb_typeof(request -> 'submittedBy') NOT IN ('string', 'null') THEN 'submittedBy is no text'
        WHEN bytes > most THEN
            format('the request has %s bytes as JSON, and %s are the most', bytes, most)
    END;
    IF wrong IS NULL AND jsonb_typeof(request -> 'items') = 'array' THEN
        IF jsonb_array_length(request -> 'items') = 0 THEN
            RETURN NULL;
        END IF;
        SELECT n - 1 INTO item
        FROM jsonb_array_elements(request -> 'items') WITH ORDINALITY AS items (item, n)
        WHERE jsonb_typeof(items.item) <> 'object'
        ORDER BY n
        LIMIT 1;
        wrong := 'items[' || item || '] is no JSON object';
    END IF;
    IF wrong IS NOT NULL THEN
        RAISE EXCEPTION 'windlass_enqueue: %', wrong USING ERRCODE = 'invalid_parameter_value';
    END IF;
    -- The time in milliseconds, the version, and what is random about a version 4 UUID.
    random := replace(gen_random_uuid()::text, '-', '');
    id := (lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0')
        || '7' || substr(random, 14))::uuid;
    INSERT INTO windlass_outbox (id, job_type, request)
    VALUES (id, windlass_enqueue.job_type, windlass_enqueue.request);
    -- Delivered with the commit, if there is one.
    PERFORM pg_notify('windlass_outbox', '');
    RETURN id;
END
$body$;
REVOKE ALL ON FUNCTION windlass_enqueue(text, jsonb) FROM PUBLIC;
-- It runs with the rights of its owner, so no table of the caller's may come before ours.
DO $body$
BEGIN
    EXECUTE format(
        'ALTER FUNCTION windlass_enqueue(text, jsonb) SET search_path = pg_catalog, %I, pg_temp',
        current_schema());
END
$body$;
