-- The outbox: requests that applications insert in their own transactions. The relay submits them as jobs.
--
-- If Windlass may not create tables, an administrator runs this as one transaction. Afterwards
-- Windlass needs:
--   GRANT SELECT, UPDATE, DELETE ON windlass_outbox TO <the user of windlass>;
-- An application needs only:
--   GRANT EXECUTE ON FUNCTION windlass_enqueue(text, jsonb) TO <the application>;
CREATE TABLE IF NOT EXISTS windlass_outbox (
    id         uuid        PRIMARY KEY,
    job_type   text        NOT NULL,
    request    jsonb       NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    attempts   integer     NOT NULL DEFAULT 0,
    error      text,
    next_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    -- A larger count would overflow, and an infinite time cannot be read.
    CONSTRAINT attempts_is_a_count CHECK (attempts BETWEEN 0 AND 1000000000),
    CONSTRAINT times_are_finite CHECK (isfinite(created_at) AND isfinite(next_at))
);
CREATE INDEX IF NOT EXISTS windlass_outbox_due ON windlass_outbox (next_at, id);

-- Adds a request and returns the id of its future job: a version 7 UUID, known before the transaction commits. An
-- empty list of items makes no job and returns NULL.
--
-- The function runs with the privileges of its owner. So its search path is pg_catalog alone, and the table is named
-- with its schema: it cannot use operators, functions or tables that another role creates.
DO $install$
BEGIN
    IF (SELECT relowner FROM pg_catalog.pg_class
        WHERE oid = pg_catalog.format('%I.windlass_outbox', current_schema())::pg_catalog.regclass)
        <> (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = current_user)
    THEN
        -- A trigger of that table would run with the privileges of the function's owner.
        RAISE EXCEPTION 'windlass_outbox exists and belongs to another role than %', current_user
            USING HINT = 'Drop that table, or let its owner run the statements of windlass migrate --print.';
    END IF;
    EXECUTE replace($function$
CREATE OR REPLACE FUNCTION {schema}.windlass_enqueue(job_type text, request jsonb) RETURNS uuid
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    max_bytes CONSTANT bigint := 8388608;
    bytes  bigint;
    item   bigint;
    wrong  text;
    random text;
    id     uuid;
BEGIN
    -- The size of the request, including the name of the job type.
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
        WHEN bytes > max_bytes THEN
            format('the request has %s bytes as JSON, and %s are the most', bytes, max_bytes)
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
    -- The time in milliseconds, the version, and the random part of a version 4 UUID.
    random := replace(gen_random_uuid()::text, '-', '');
    id := (lpad(to_hex((extract(epoch FROM clock_timestamp()) * 1000)::bigint), 12, '0')
        || '7' || substr(random, 14))::uuid;
    INSERT INTO {schema}.windlass_outbox (id, job_type, request)
    VALUES (id, windlass_enqueue.job_type, windlass_enqueue.request);
    -- Delivered when the transaction commits.
    PERFORM pg_notify('windlass_outbox', '');
    RETURN id;
END
$body$;
REVOKE ALL ON FUNCTION {schema}.windlass_enqueue(text, jsonb) FROM PUBLIC;
$function$, '{schema}', quote_ident(current_schema()));
END
$install$;
