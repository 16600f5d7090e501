-- The outbox: requests that applications insert in their own transactions. The relay submits them as jobs. Every
-- process that can write the file can insert:
--   INSERT INTO windlass_outbox (job_type, request) VALUES (…) RETURNING id;
--
-- The id, a version 7 UUID, becomes the id of the job. Times are milliseconds since 1970, by this machine's clock. The
-- application's SQLite evaluates all of it, and may be an old version.
CREATE TABLE IF NOT EXISTS windlass_outbox (
    id         TEXT    NOT NULL PRIMARY KEY DEFAULT (
        substr(printf('%012x', CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)), 1, 8)
        || '-' ||
        substr(printf('%012x', CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)), 9, 4)
        || '-7' || substr(lower(hex(randomblob(2))), 2)
        || '-' || substr('89ab', 1 + (random() & 3), 1) || substr(lower(hex(randomblob(2))), 2)
        || '-' || lower(hex(randomblob(6)))),
    job_type   TEXT    NOT NULL,
    request    TEXT    NOT NULL DEFAULT '{}',
    created_at INTEGER NOT NULL
        DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)),
    attempts   INTEGER NOT NULL DEFAULT 0,
    error      TEXT,
    next_at    INTEGER NOT NULL DEFAULT 0,
    CONSTRAINT id_is_a_uuid CHECK (
        id LIKE '________-____-____-____-____________' AND length(replace(id, '-', '')) = 32
        AND replace(id, '-', '') NOT GLOB '*[^0-9a-f]*'),
    -- A larger count would overflow.
    CONSTRAINT attempts_is_a_count CHECK (
        typeof(attempts) = 'integer' AND attempts BETWEEN 0 AND 1000000000),
    CONSTRAINT times_are_milliseconds CHECK (
        typeof(created_at) = 'integer' AND typeof(next_at) = 'integer'),
    CONSTRAINT job_type_is_missing CHECK (job_type <> ''),
    -- A column of any type accepts bytes.
    CONSTRAINT everything_is_text CHECK (
        typeof(id) = 'text' AND typeof(job_type) = 'text' AND typeof(request) = 'text'),
    CONSTRAINT request_is_a_json_object CHECK (
        CASE json_valid(request) WHEN 1 THEN json_type(request) = 'object' ELSE 0 END),
    CONSTRAINT request_names_no_job_type CHECK (
        CASE json_valid(request) WHEN 1 THEN json_type(request, '$.jobType') IS NULL ELSE 1 END),
    CONSTRAINT items_is_a_list CHECK (
        CASE json_valid(request)
            WHEN 1 THEN coalesce(json_type(request, '$.items'), 'null') IN ('array', 'null')
            ELSE 1 END),
    CONSTRAINT claims_is_a_json_object CHECK (
        CASE json_valid(request)
            WHEN 1 THEN coalesce(json_type(request, '$.claims'), 'null') IN ('object', 'null')
            ELSE 1 END),
    -- The size of the text, including the name of the job type.
    CONSTRAINT request_has_at_most_8388608_bytes CHECK (
        length(CAST(request AS BLOB)) + length(CAST(job_type AS BLOB)) + 16 <= 8388608)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS windlass_outbox_due ON windlass_outbox (next_at, id);

-- What the triggers check of the requests of a job type. Windlass writes a row per job type of its configuration.
CREATE TABLE IF NOT EXISTS windlass_outbox_types (
    job_type TEXT NOT NULL PRIMARY KEY,
    -- The field of the request that holds the items; NULL if its requests have none.
    list     TEXT,
    -- The field that must have the same value in all items of a request.
    unit     TEXT
) WITHOUT ROWID;

-- Triggers of earlier versions.
DROP TRIGGER IF EXISTS windlass_outbox_nothing;
DROP TRIGGER IF EXISTS windlass_outbox_one_unit;

-- A request whose list of items is empty or missing makes no job, and the insert returns no id. The row that is
-- inserted instead is logged by the relay. Its `next_at` is 1, so that it does not run the trigger again where
-- triggers are recursive.
CREATE TRIGGER windlass_outbox_nothing BEFORE INSERT ON windlass_outbox
WHEN NEW.next_at <> 1 AND CASE json_valid(NEW.request)
    WHEN 1 THEN coalesce(
        (SELECT CASE coalesce(json_type(NEW.request, '$."' || list || '"'), json_type(NEW.request, '$.items'), 'null')
                WHEN 'null' THEN 1
                WHEN 'array' THEN coalesce(json_array_length(NEW.request, '$."' || list || '"'),
                    json_array_length(NEW.request, '$.items')) = 0
                ELSE 0 END
         FROM windlass_outbox_types WHERE job_type = NEW.job_type AND list IS NOT NULL),
        json_type(NEW.request, '$.items') = 'array' AND json_array_length(NEW.request, '$.items') = 0)
    ELSE 0 END
BEGIN
    INSERT INTO windlass_outbox (job_type, request, next_at) VALUES (NEW.job_type, NEW.request, 1);
    SELECT RAISE(IGNORE);
END;

-- All items belong to one unit, and to the one that the request names. The request is parsed a fixed number of times,
-- not once per item.
CREATE TRIGGER windlass_outbox_one_unit BEFORE INSERT ON windlass_outbox
WHEN CASE json_valid(NEW.request)
    WHEN 1 THEN 1 < (
        SELECT count(*) FROM (
            SELECT json_extract(item.value, '$."' || types.unit || '"') AS value
            FROM windlass_outbox_types AS types,
                json_each(NEW.request, CASE WHEN json_type(NEW.request, '$."' || types.list || '"') IS NULL
                    THEN '$.items' ELSE '$."' || types.list || '"' END) AS item
            WHERE types.job_type = NEW.job_type AND types.unit IS NOT NULL AND item.type = 'object'
            UNION
            SELECT coalesce(json_extract(NEW.request, '$.params."' || types.unit || '"'),
                json_extract(NEW.request, '$."' || types.unit || '"'))
            FROM windlass_outbox_types AS types
            WHERE types.job_type = NEW.job_type AND types.unit IS NOT NULL
        ) WHERE value IS NOT NULL)
    ELSE 0 END
BEGIN
    SELECT RAISE(ABORT, 'items_have_different_units: all items of a request must have the same value in the field of source.unit');
END;
