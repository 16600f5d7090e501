-- The outbox: requests that applications insert in their own transactions. The relay submits them as jobs.
--
-- If Windlass may not create tables, an administrator runs this as one transaction. Afterwards
-- Windlass needs:
--   GRANT SELECT, UPDATE, DELETE ON windlass_outbox TO <the user of windlass>;
--   GRANT SELECT, INSERT, UPDATE ON windlass_outbox_types TO <the user of windlass>;
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

-- What the function checks of the requests of a job type. Windlass writes a row per job type of its configuration.
CREATE TABLE IF NOT EXISTS windlass_outbox_types (
    job_type text PRIMARY KEY,
    -- The field of the request that holds the items; NULL if its requests have none.
    list     text,
    -- The field that must have the same value in all items of a request.
    unit     text
);

-- Adds a request and returns the id of its future job: a version 7 UUID, known before the transaction commits. A
-- request whose list of items is empty or missing makes no job and returns NULL; the relay logs its row.
--
-- The function runs with the privileges of its owner. So its search path is pg_catalog alone, and the table is named
-- with its schema: it cannot use operators, functions or tables that another role creates.
DO $install$
DECLARE
    taken text;
BEGIN
    FOR taken IN SELECT relname FROM pg_catalog.pg_class
        WHERE relname IN ('windlass_outbox', 'windlass_outbox_types')
        AND relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = current_schema())
        AND relowner <> (SELECT oid FROM pg_catalog.pg_roles WHERE rolname = current_user)
    LOOP
        -- A trigger of that table would run with the privileges of the function's owner.
        RAISE EXCEPTION '% exists and belongs to another role than %', taken, current_user
            USING HINT = 'Drop that table, or let its owner run the statements of windlass migrate --print.';
    END LOOP;
    EXECUTE replace($function$
CREATE OR REPLACE FUNCTION {schema}.windlass_enqueue(job_type text, request jsonb) RETURNS uuid
LANGUAGE plpgsql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $body$
DECLARE
    max_bytes CONSTANT bigint := 8388608;
    bytes    bigint;
    list_field text;
    unit     text;
    field    text;
    items    jsonb;
    named    jsonb;
    is_empty boolean;
    wrong    text;
    random   text;
    id       uuid;
BEGIN
    SELECT types.list, types.unit INTO list_field, unit
    FROM {schema}.windlass_outbox_types AS types
    WHERE types.job_type = windlass_enqueue.job_type;
    field := CASE WHEN request ? list_field THEN list_field ELSE 'items' END;
    items := request -> field;
    -- Where the requests of a job type have items, a missing list is like an empty one.
    is_empty := CASE coalesce(jsonb_typeof(items), 'null')
        WHEN 'array' THEN jsonb_array_length(items) = 0
        WHEN 'null' THEN list_field IS NOT NULL
    END;
    -- The size of the request, including the name of the job type.
    bytes := octet_length(request::text) + octet_length(job_type) + 16;
    wrong := CASE
        WHEN coalesce(job_type, '') = '' THEN 'job_type is missing'
        WHEN request IS NULL THEN 'request is missing; {} would be right'
        WHEN jsonb_typeof(request) <> 'object' THEN 'request is no JSON object'
        WHEN request ? 'jobType' THEN 'request has a jobType; it is the first argument'
        WHEN jsonb_typeof(items) NOT IN ('array', 'null') THEN field || ' is no list'
        WHEN jsonb_typeof(request -> 'params') NOT IN ('object') THEN 'params is no JSON object'
        WHEN jsonb_typeof(request -> 'claims') NOT IN ('object', 'null') THEN 'claims is no JSON object'
        WHEN jsonb_typeof(request -> 'submittedBy') NOT IN ('string', 'null') THEN 'submittedBy is no text'
        WHEN bytes > max_bytes THEN
            format('the request has %s bytes as JSON, and %s are the most', bytes, max_bytes)
    END;
    IF wrong IS NULL AND jsonb_typeof(items) = 'array' THEN
        SELECT format('%s[%s] is no JSON object', field, n - 1) INTO wrong
        FROM jsonb_array_elements(items) WITH ORDINALITY AS list (item, n)
        WHERE jsonb_typeof(list.item) <> 'object'
        ORDER BY n
        LIMIT 1;
        -- All items belong to the unit that the request names, or else to that of the first item.
        named := nullif(coalesce(request -> 'params' -> unit, request -> unit), 'null');
        IF wrong IS NULL AND unit IS NOT NULL THEN
            SELECT format('%s[%s].%s is %s, but %s is %s; all items of a request must have the same value',
                field, n - 1, unit, list.item -> unit,
                CASE WHEN named IS NULL THEN format('%s[0].%s', field, unit) ELSE unit END,
                coalesce(named, items -> 0 -> unit)) INTO wrong
            FROM jsonb_array_elements(items) WITH ORDINALITY AS list (item, n)
            WHERE nullif(list.item -> unit, 'null') <> coalesce(named, items -> 0 -> unit)
            ORDER BY n
            LIMIT 1;
        END IF;
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
    RETURN CASE WHEN is_empty THEN NULL ELSE id END;
END
$body$;
REVOKE ALL ON FUNCTION {schema}.windlass_enqueue(text, jsonb) FROM PUBLIC;
$function$, '{schema}', quote_ident(current_schema()));
END
$install$;
